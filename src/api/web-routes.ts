/** The OpenEnv web interface of one environment; registered only where the configuration asks for it. */

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { dict } from '../environment/fields.ts'
import { readBodyObject } from './body.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import type { Heartbeat } from './heartbeat.ts'
import { HttpFault, sendJson, unprocessable } from './http-fault.ts'
import { check, errorItem } from './validation.ts'
import { renderWebPage } from './web-page.ts'
import type { WebVisit } from './web-visit.ts'

const NOT_RESET = 'Environment not initialized. Call reset() first.'
const StepBody = z.looseObject({ action: dict().optional(), message: z.unknown().optional() })

/** Register the interface. All visitors of one environment share one visit. */
export function registerWebRoutes(
  app: FastifyInstance,
  edge: EnvironmentEdge,
  visit: WebVisit,
  heartbeat: Heartbeat,
  prefix: string,
): void {
  const { environment } = edge
  const page = renderWebPage(environment.metadata, edge.schemas.action)
  const home = `${prefix}/web/`

  app.get(prefix === '' ? '/' : '', (_request, reply) => reply.redirect(home, 307))
  app.get('/web', (_request, reply) => reply.redirect(home, 307))
  app.get('/web/', (_request, reply) => reply.header('content-type', 'text/html; charset=utf-8').send(page))
  app.get('/web/metadata', async (_request, reply) => sendJson(reply, await visit.metadata()))

  app.post('/web/reset', async (request, reply) => {
    const body = readBodyObject(request, true) ?? {}
    const checked = check(environment.resetSchema, body, { loc: ['body'] })
    if (!checked.ok) throw unprocessable(checked.items)
    return sendJson(reply, await visit.reset(checked.value))
  })

  app.post('/web/step', async (request, reply) => {
    const body = readBodyObject(request)
    if (body === null) throw unprocessable([errorItem('missing', ['body'], 'Field required', null)])
    const envelope = check(StepBody, body, { loc: ['body'] })
    if (!envelope.ok) throw unprocessable(envelope.items)
    const { message, action = {} } = envelope.value
    const given = message === undefined ? action : { message }
    const checked = check(environment.actionSchema, given, { url: true })
    if (!checked.ok) throw unprocessable(checked.items)
    const { session } = visit
    if (session === null) throw new HttpFault(409, NOT_RESET)
    return sendJson(reply, await visit.step(session, checked.value, given))
  })

  app.get('/web/state', async (_request, reply) => {
    const { session } = visit
    if (session === null) throw new HttpFault(409, NOT_RESET)
    return sendJson(reply, await session.state())
  })

  app.route({
    method: 'GET',
    url: '/ws/ui',
    config: { isUpgradeOnly: true },
    handler: (_request, reply) => sendJson(reply, { detail: 'Not Found' }, 404),
    wsHandler: (socket, request) => {
      heartbeat.watch(socket, request.raw.socket)
      visit.addViewer(socket)
    },
  })
}
