/**
 * Who holds which slot, and until when.
 *
 * A session is one client's hold on a slot, in which episodes follow one
 * another: a WebSocket, an MCP session, or one HTTP episode. The table counts
 * the slots, finds sessions again, and closes those that nobody uses.
 */

import { CapacityError, ServiceError } from '../errors.ts'
import type { Environment } from './environment.ts'
import { type CloseReason, Session } from './session.ts'

export { type CloseReason, Session } from './session.ts'

export type SessionTableOptions = {
  environments: readonly Environment[]
  /** Sessions held at once. */
  capacity: number
  /** A session that nobody used for this long is closed, in milliseconds; 0 never. */
  idleMs: number
  /** A session whose episode is this old is closed, in milliseconds; 0 never. */
  lifetimeMs: number
}

/** How often limits are checked: a quarter of the shorter one, within these bounds, in milliseconds. */
const MIN_SWEEP_MS = 10
const MAX_SWEEP_MS = 5_000
/** A slow model thinks for minutes between two steps; longer than this it has probably left. */
const YIELD_AFTER_MS = 300_000

/** All live sessions of the service. */
export class SessionTable {
  readonly environments: ReadonlyMap<string, Environment>
  readonly capacity: number
  readonly #idleMs: number
  readonly #lifetimeMs: number
  readonly #sessions = new Map<string, Session>()
  readonly #byEpisode = new Map<string, Session>()
  readonly #yielding = new Set<Session>()
  readonly #reaper: NodeJS.Timeout | undefined
  #closed = false

  constructor({ environments, capacity, idleMs, lifetimeMs }: SessionTableOptions) {
    this.environments = new Map(environments.map(environment => [environment.name, environment]))
    this.capacity = capacity
    this.#idleMs = idleMs
    this.#lifetimeMs = lifetimeMs
    const shortest = Math.min(idleMs || Number.POSITIVE_INFINITY, lifetimeMs || Number.POSITIVE_INFINITY)
    if (Number.isFinite(shortest)) {
      const period = Math.max(MIN_SWEEP_MS, Math.min(shortest / 4, MAX_SWEEP_MS))
      this.#reaper = setInterval(() => this.#sweep(), period).unref()
    }
  }

  /** Slots in use. */
  get active(): number {
    return this.#sessions.size
  }

  /**
   * Reserve a slot at once. The session has no episode until its first reset.
   *
   * @param options `yields` marks a session whose client keeps no connection that would tell when it leaves. When all
   * slots are taken, one of these makes room: first one whose episode is over, then one unused for YIELD_AFTER_MS, the
   * longest unused of each.
   * @throws {CapacityError} When no slot is free.
   * @throws {ServiceError} `shutting_down` after `close()` began; `invalid_request` for an unknown environment.
   */
  open(environmentName: string, { yields = false }: { yields?: boolean } = {}): Session {
    if (this.#closed) throw new ServiceError('shutting_down', 'the service is shutting down')
    const environment = this.environments.get(environmentName)
    if (environment === undefined) {
      throw new ServiceError('invalid_request', `there is no environment named ${environmentName}`)
    }
    if (this.#sessions.size >= this.capacity) this.#makeRoom()
    if (this.#sessions.size >= this.capacity) throw new CapacityError(this.#sessions.size, this.capacity)
    const session = new Session(environment, {
      episodeChanged: (previous, next) => {
        if (previous !== null && this.#byEpisode.get(previous) === session) this.#byEpisode.delete(previous)
        if (next !== null) this.#byEpisode.set(next, session)
      },
      closed: () => {
        this.#sessions.delete(session.id)
        this.#yielding.delete(session)
      },
    })
    this.#sessions.set(session.id, session)
    if (yields) this.#yielding.add(session)
    return session
  }

  /**
   * A live session by its own id, or by the id of its current episode.
   *
   * Clients choose episode ids; of two sessions that chose the same, the one that was reset last is found.
   */
  find(id: string): Session | undefined {
    return this.#sessions.get(id) ?? this.#byEpisode.get(id)
  }

  /** Closes every session and refuses new ones; idempotent. */
  close(): void {
    this.#closed = true
    clearInterval(this.#reaper)
    this.#closeEach('shutdown', () => true)
  }

  #makeRoom(): void {
    const now = performance.now()
    const byRest = [...this.#yielding].sort((a, b) => b.idleMs(now) - a.idleMs(now))
    const leaving = byRest.find(session => session.over && session.idleMs(now) > 0)
    const resting = byRest.find(session => session.idleMs(now) >= YIELD_AFTER_MS)
    const chosen = leaving ?? resting
    chosen?.close('evicted')
  }

  #sweep(): void {
    const now = performance.now()
    const lifetimeMs = this.#lifetimeMs
    const idleMs = this.#idleMs
    if (lifetimeMs > 0) this.#closeEach('lifetime', session => session.ageMs(now) >= lifetimeMs)
    if (idleMs > 0) this.#closeEach('idle', session => session.idleMs(now) >= idleMs)
  }

  #closeEach(why: CloseReason, chosen: (session: Session) => boolean): void {
    // A copy, because closing removes the session from the map.
    for (const session of [...this.#sessions.values()]) if (chosen(session)) session.close(why)
  }
}
