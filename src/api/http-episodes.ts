/** Episodes kept between plain HTTP requests, and how a request names the one it means. */

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Environment, StepResult } from '../environment/environment.ts'
import type { Session, SessionTable } from '../environment/sessions.ts'
import { HttpFault, unprocessable } from './http-fault.ts'
import { errorItem } from './validation.ts'

const EPISODE_HEADER = 'x-episode-id'

/** The sessions opened by `POST /reset` of one environment, by the id of their episode. */
export class HttpEpisodes {
  readonly #sessions: SessionTable
  readonly #environment: Environment
  readonly #byEpisode = new Map<string, Session>()
  readonly #idOf = new Map<Session, string>()

  constructor(sessions: SessionTable, environment: Environment) {
    this.#sessions = sessions
    this.#environment = environment
  }

  /**
   * Start an episode: in the session of the live HTTP episode named, else in a new session.
   *
   * @param request Validated reset request. Its `episode_id` may name a live episode, which is replaced.
   * @throws whatever the table or the environment throws; a session opened for nothing is closed.
   */
  async reset(request: Record<string, unknown>): Promise<{ session: Session; result: StepResult }> {
    const named = typeof request.episode_id === 'string' ? this.#byEpisode.get(request.episode_id) : undefined
    const session = named ?? this.#open()
    try {
      const result = await session.reset(request)
      this.#remember(session)
      return { session, result }
    } catch (error) {
      // A failed replacement may have left the old episode whole; a session without an episode holds a slot for nothing.
      if (session.episodeId === null) session.close('client')
      throw error
    }
  }

  /**
   * The session a request means: the first id given, else the only live one.
   *
   * @param given Ids in the order in which they count; null, undefined and empty ones are passed over.
   * @returns A session that is undefined when the id is not live, or none was given and it isn't clear; the id is
   * empty when none was given.
   */
  locate(given: (string | null | undefined)[]): { session: Session | undefined; id: string } {
    const id = given.find(candidate => candidate !== null && candidate !== undefined && candidate !== '') ?? ''
    if (id !== '') return { session: this.#byEpisode.get(id), id }
    const [only, another] = this.#byEpisode.values()
    return { session: another === undefined ? only : undefined, id }
  }

  /**
   * As `locate`, for requests that need a session.
   *
   * @param where Part of the request in which the error item places the missing field.
   * @throws {HttpFault} 404 for an id that is not live, 422 naming `episode_id` when none was given and it isn't clear.
   */
  find(given: (string | null | undefined)[], where: 'body' | 'query' = 'body'): Session {
    const { session, id } = this.locate(given)
    if (session !== undefined) return session
    if (id !== '') {
      throw new HttpFault(404, `Episode '${id}' not found: it was closed, or never opened by POST /reset here`)
    }
    const state =
      this.#byEpisode.size === 0
        ? 'no HTTP episode is live, call POST /reset first'
        : `${this.#byEpisode.size} HTTP episodes are live, send the metadata.episode_id of one`
    throw unprocessable([
      errorItem('missing', [where, 'episode_id'], `Field required: ${state}`, null, {
        expected: `episode_id in the ${where}, the ${EPISODE_HEADER} header or the cookie of the reset`,
        live_episodes: this.#byEpisode.size,
      }),
    ])
  }

  /** Whether any episode is live. */
  get size(): number {
    return this.#byEpisode.size
  }

  #open(): Session {
    const session = this.#sessions.open(this.#environment.name, { yields: true })
    session.onClose(() => this.#forget(session))
    return session
  }

  #remember(session: Session): void {
    this.#forget(session)
    const id = session.episodeId
    if (id === null) return
    // Two resets that named the same new id at once: the later one has it.
    this.#byEpisode.get(id)?.close('client')
    this.#byEpisode.set(id, session)
    this.#idOf.set(session, id)
  }

  #forget(session: Session): void {
    const id = this.#idOf.get(session)
    if (id === undefined) return
    this.#idOf.delete(session)
    if (this.#byEpisode.get(id) === session) this.#byEpisode.delete(id)
  }
}

/** The episode named by the header of a request, or null. */
export function headerEpisodeId(request: FastifyRequest): string | null {
  const header = request.headers[EPISODE_HEADER]
  return typeof header === 'string' && header !== '' ? decode(header) : null
}

/** The episode named by the cookie that an earlier reset set, or null. */
export function cookieEpisodeId(request: FastifyRequest, environmentName: string): string | null {
  const name = cookieName(environmentName)
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2)
    if (key === name && value) return decode(value)
  }
  return null
}

/** Name the episode in the header and the cookie of a reply; odd characters are percent-encoded. */
export function nameEpisode(reply: FastifyReply, environmentName: string, episodeId: string): void {
  const id = encodeURIComponent(episodeId.toWellFormed())
  reply.header(EPISODE_HEADER, id)
  reply.header('set-cookie', `${cookieName(environmentName)}=${id}; Path=/; HttpOnly; SameSite=Lax`)
}

const cookieName = (environmentName: string) => `forkyard_${environmentName}_episode`

/** Undo percent-encoding; text that isn't percent-encoded is taken as it is. */
function decode(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch (error) {
    if (error instanceof URIError) return value
    throw error
  }
}
