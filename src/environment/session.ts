/** One client's hold on a slot: a queue of calls on one episode after another. */

import { randomUUID } from 'node:crypto'
import { ServiceError } from '../errors.ts'
import type { Environment, Episode, JsonObject, StepOptions, StepResult } from './environment.ts'

/** Why a session was closed. */
export type CloseReason = 'client' | 'idle' | 'lifetime' | 'evicted' | 'shutdown'

/** What a session tells the table that made it. */
export type SessionEvents = {
  /** The current episode has another id now; null is none. */
  episodeChanged: (previous: string | null, next: string | null) => void
  closed: () => void
}

/** Made by `SessionTable.open`. */
export class Session {
  readonly id: string = randomUUID()
  readonly environment: Environment
  readonly #events: SessionEvents
  readonly #listeners: ((why: CloseReason) => void)[] = []
  #episode: Episode | null = null
  #queue: Promise<unknown> = Promise.resolve()
  #pending = 0
  #closed: CloseReason | null = null
  #over = false
  #bornMs = performance.now()
  #usedMs = performance.now()

  constructor(environment: Environment, events: SessionEvents) {
    this.environment = environment
    this.#events = events
  }

  /** Id of the current episode; null before the first reset and after a reset that failed. */
  get episodeId(): string | null {
    return this.#episode?.id ?? null
  }

  /** Why the session was closed; null while it is open. */
  get closed(): CloseReason | null {
    return this.#closed
  }

  /** The current episode has ended: what is left is to repeat its last observation. */
  get over(): boolean {
    return this.#over
  }

  /** Age of the current episode, or of the session before its first reset, in milliseconds. */
  ageMs(nowMs: number): number {
    return nowMs - this.#bornMs
  }

  /** Time since the last use, in milliseconds; 0 while a call runs or waits. */
  idleMs(nowMs: number): number {
    return this.#pending > 0 ? 0 : nowMs - this.#usedMs
  }

  /**
   * Close the current episode and open the next. A reset that fails leaves the session without an episode.
   *
   * @param request Already validated by the environment's `resetSchema`.
   * @throws {ServiceError} `episode_not_found` or `shutting_down` when the session is closed; what `Environment.open` throws.
   */
  reset(request: Record<string, unknown>): Promise<StepResult> {
    return this.#enqueue(async () => {
      this.#bornMs = performance.now()
      this.#setEpisode(null)
      const episode = await this.environment.open(request)
      if (this.#closed !== null) {
        episode.close()
        throw closedError(this.#closed)
      }
      this.#setEpisode(episode)
      return episode.initial
    })
  }

  /**
   * Perform one action in the current episode.
   *
   * @param action Already validated by the environment's `actionSchema`.
   * @throws {ServiceError} `not_reset` before the first reset; `episode_not_found` or `shutting_down` when closed.
   */
  step(action: unknown, options: StepOptions): Promise<StepResult> {
    return this.#enqueue(async () => {
      const result = await this.#current().step(action, options)
      this.#over = result.done
      return result
    })
  }

  /**
   * The environment's state object.
   *
   * @throws {ServiceError} As `step`.
   */
  state(): Promise<JsonObject> {
    return this.#enqueue(async () => this.#current().state())
  }

  /** Call back when the session closes, at once when it already is. The listener must not throw. */
  onClose(listener: (why: CloseReason) => void): void {
    if (this.#closed === null) this.#listeners.push(listener)
    else listener(this.#closed)
  }

  /** Heartbeat: marks the session as used now. */
  touch(): void {
    this.#usedMs = performance.now()
  }

  /** Release the slot and the worker at once, also while a step runs; its promise then rejects. Idempotent. */
  close(why: CloseReason): void {
    if (this.#closed !== null) return
    this.#closed = why
    this.#setEpisode(null)
    this.#events.closed()
    for (const listener of this.#listeners.splice(0)) listener(why)
  }

  #current(): Episode {
    if (this.#episode === null) {
      throw new ServiceError('not_reset', 'Environment not initialized. Call reset() first.')
    }
    return this.#episode
  }

  #setEpisode(next: Episode | null): void {
    const previous = this.#episode
    this.#episode = next
    this.#over = false
    this.#events.episodeChanged(previous?.id ?? null, next?.id ?? null)
    previous?.close()
  }

  #enqueue<Result>(call: () => Promise<Result>): Promise<Result> {
    this.#pending++
    const result = this.#queue.then(async () => {
      try {
        if (this.#closed !== null) throw closedError(this.#closed)
        const result = await call()
        // What the end of its worker looked like is no observation of the episode.
        if (this.#closed !== null) throw closedError(this.#closed)
        return result
      } finally {
        this.#pending--
        this.touch()
      }
    })
    // The caller gets the failure; the calls behind it must still run.
    this.#queue = result.catch((failure: unknown) => failure)
    return result
  }
}

function closedError(why: CloseReason): ServiceError {
  return why === 'shutdown'
    ? new ServiceError('shutting_down', 'the service is shutting down')
    : new ServiceError('episode_not_found', `the session is closed (${why})`)
}
