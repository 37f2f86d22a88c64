/** Calls of agent code that wait for an answer of the service, such as `llm_query`. */

import { performance } from 'node:perf_hooks'
import { messageOf, ServiceError } from '../errors.ts'
import type { WorkerCall } from './executor.ts'
import type { CallFrame, ServiceFrame } from './protocol.ts'

/** More calls in flight than any batch needs; past it a call is refused. */
const MAX_IN_FLIGHT = 256
/** Calls of one cell, refused ones included; past it the worker is ended: no program needs them, only a flood does. */
const MAX_CALLS = 20_000
const OVER = 'the step that made this call is over'

/** Answers the calls of one worker and measures how long its cell has waited for them. */
export class CallDesk {
  readonly #send: (frame: ServiceFrame) => void
  readonly #inFlight = new Set<number>()
  #answer: (call: WorkerCall) => Promise<unknown> = () => Promise.reject(new Error(OVER))
  #cell: number | undefined
  #calls = 0
  /** Made for the first call of a cell: most cells make none. */
  #abort: AbortController | undefined
  #waitingSince = 0
  #waitedMs = 0
  /** Told when the cell starts to wait (true) and when its last call is answered (false). */
  onWaiting: (waiting: boolean) => void = () => undefined

  constructor(send: (frame: ServiceFrame) => void) {
    this.#send = send
  }

  /** Time the running cell has waited with at least one call in flight, in milliseconds. */
  get waitedMs(): number {
    return this.#waitedMs + (this.#inFlight.size > 0 ? performance.now() - this.#waitingSince : 0)
  }

  /** Take calls of a cell. */
  begin(cell: number, answer: (call: WorkerCall) => Promise<unknown>): void {
    this.#cell = cell
    this.#answer = answer
    this.#calls = 0
    this.#abort = undefined
    this.#waitedMs = 0
  }

  /** Abort what is in flight: the cell is over, and threads that still wait are told so. */
  end(): void {
    this.#cell = undefined
    this.onWaiting = () => undefined
    this.#abort?.abort()
    for (const call of this.#inFlight) this.#reply(call, null, OVER)
    this.#inFlight.clear()
  }

  /** @throws {ServiceError} `protocol_violation` for a number that is in use, or for too many calls. */
  accept(frame: CallFrame): void {
    if (++this.#calls > MAX_CALLS)
      throw new ServiceError('protocol_violation', `more than ${MAX_CALLS} calls in one step`)
    if (this.#inFlight.has(frame.call))
      throw new ServiceError('protocol_violation', `call ${frame.call} is in flight already`)
    const refusal = this.#refusal(frame)
    if (refusal !== null) {
      this.#reply(frame.call, null, refusal)
      return
    }
    this.#abort ??= new AbortController()
    const { signal } = this.#abort
    this.#inFlight.add(frame.call)
    if (this.#inFlight.size === 1) {
      this.#waitingSince = performance.now()
      this.onWaiting(true)
    }
    const answer = this.#answer({ name: frame.name, arguments: frame.arguments, signal })
    answer.then(
      value => this.#finish(frame.call, signal, value, null),
      error => this.#finish(frame.call, signal, null, messageOf(error)),
    )
  }

  #finish(call: number, signal: AbortSignal, value: unknown, error: string | null): void {
    if (signal.aborted) return
    this.#inFlight.delete(call)
    if (this.#inFlight.size === 0) {
      this.#waitedMs += performance.now() - this.#waitingSince
      this.onWaiting(false)
    }
    this.#reply(call, value, error)
  }

  #reply(call: number, value: unknown, error: string | null): void {
    try {
      this.#send({ type: 'reply', call, value: value ?? null, error })
    } catch (cause) {
      // Only an answer that JSON can't hold gets here.
      const text = `the answer can not be sent: ${messageOf(cause)}`
      this.#send({ type: 'reply', call, value: null, error: text })
    }
  }

  #refusal(frame: CallFrame): string | null {
    if (frame.id !== this.#cell) return OVER
    return this.#inFlight.size >= MAX_IN_FLIGHT ? `more than ${MAX_IN_FLIGHT} calls in flight` : null
  }
}
