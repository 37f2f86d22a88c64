/** Episodes over plain HTTP: `/reset`, `/step`, `/state` and `/episodes/{id}`. */

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { dict, laxNumber, text } from '../environment/fields.ts'
import { readBodyObject } from './body.ts'
import { toEnvelope } from './envelope.ts'
import { BaseState, type EnvironmentEdge } from './environment-edge.ts'
import { cookieEpisodeId, headerEpisodeId, nameEpisode } from './http-episodes.ts'
import { sendJson, unprocessable } from './http-fault.ts'
import { inTime } from './in-time.ts'
import { check, errorItem } from './validation.ts'

/** The body of `POST /step`; other keys are accepted and ignored. */
export const StepRequest = z.looseObject({
  action: dict().describe('The action; GET /schema describes its fields.'),
  timeout_s: laxNumber({ above: 0 })
    .nullish()
    .describe('Limit for this step in seconds; clamped to the ceiling of the server.'),
  request_id: text(255).nullish().describe('Accepted for compatibility; not echoed.'),
  episode_id: text(255)
    .nullish()
    .describe('The episode to step; see the x-episode-id header for other ways to name it.'),
})

const StateQuery = z.object({ episode_id: z.string().optional(), full: z.string().optional() })

/** Register the routes that `production` mode leaves out. */
export function registerEpisodeRoutes(app: FastifyInstance, edge: EnvironmentEdge): void {
  const { environment, episodes } = edge

  app.post('/reset', async (request, reply) => {
    const body = readBodyObject(request, true) ?? {}
    // An explicit header names the episode to replace. A cookie doesn't: concurrent rollouts share one cookie jar.
    const named = body.episode_id || headerEpisodeId(request)
    const checked = check(edge.httpResetSchema, { ...body, episode_id: named }, { loc: ['body'] })
    if (!checked.ok) throw unprocessable(checked.items)
    const { session, result } = await inTime(episodes.reset(checked.value))
    const id = session.episodeId ?? (typeof named === 'string' ? named : null)
    if (id !== null) nameEpisode(reply, environment.name, id)
    return sendJson(reply, toEnvelope(result, id))
  })

  app.post('/step', async (request, reply) => {
    const body = readBodyObject(request)
    if (body === null) throw unprocessable([errorItem('missing', ['body'], 'Field required', null)])
    const envelope = check(StepRequest, body, { loc: ['body'] })
    if (!envelope.ok) throw unprocessable(envelope.items)
    const { action: given, timeout_s: timeoutS, episode_id: episodeId } = envelope.value
    // Items about the content of an action are relative to the action and carry a `url`.
    const action = check(environment.actionSchema, given, { url: true })
    if (!action.ok) throw unprocessable(action.items)
    const named = [episodeId, actionEpisodeId(action.value), ...namedOutside(request)]
    if (environment.answerStray !== undefined) {
      const { session, id } = episodes.locate(named)
      if (session === undefined) return sendJson(reply, toEnvelope(environment.answerStray(action.value, id), id))
    }
    const session = episodes.find(named)
    const id = session.episodeId
    const result = await inTime(session.step(action.value, { timeout_s: timeoutS ?? undefined }))
    return sendJson(reply, toEnvelope(result, id))
  })

  app.get('/state', async (request, reply) => {
    const query = StateQuery.safeParse(request.query)
    const { episode_id: id, full } = query.success ? query.data : {}
    const given = [id, ...namedOutside(request)]
    if (episodes.size === 0 && given.every(candidate => !candidate)) {
      return sendJson(reply, { episode_id: null, step_count: 0 })
    }
    const state = await inTime(episodes.find(given, 'query').state())
    if (full === 'true' || full === '1') return sendJson(reply, state)
    const { episode_id, step_count } = BaseState.parse(state)
    return sendJson(reply, { episode_id, step_count })
  })

  app.delete<{ Params: { id: string } }>('/episodes/:id', async (request, reply) => {
    const { id } = request.params
    episodes.find([id]).close('client')
    return sendJson(reply, { episode_id: id, closed: true })
  })

  const namedOutside = (request: FastifyRequest) => [
    headerEpisodeId(request),
    cookieEpisodeId(request, environment.name),
  ]
}

/** The episode named in an action itself, where the action schema has that field, or null. */
export function actionEpisodeId(action: Record<string, unknown>): string | null {
  return typeof action.episode_id === 'string' ? action.episode_id : null
}
