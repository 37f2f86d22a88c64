/** Calls of agent code that wait for an answer of the service, such as `llm_query`. */

import { performance } from 'node:perf_hooks'
import type { WorkerCall } from './executor.ts'
import type { CallFrame, ServiceFrame } from './protocol.ts'

/** More calls in flight than any batch needs; past it a call is refused, so a loop can't fill the service. */
const MAX_IN_FLIGHT = 256
const OVER = 'the step that made this call is over'

/** Answers the calls of one worker and measures how long its cell has waited for them. */
export class CallDesk {
  readonly #send: (frame: ServiceFrame) => void
  #answer: (call: WorkerCall) => Promise<unknown> = () => Promise.reject(new Error('no step is running'))
  #cell: number | undefined
  /** Made for the first call of a cell: most cells make none. */
  #abort: AbortController | undefined
  readonly #inFlight = new Set<number>()
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
    this.#abort = undefined
    this.#waitedMs = 0
  }

  /** Abort what is in flight: the cell is over, and threads that still wait are told so. */
  end(): void {
    this.#cell = undefined
    this.onWaiting = () => undefined
    this.#abort?.abort()
    for (const call of this.#inFlight) this.#send({ type: 'reply', call, value: null, error: OVER })
    this.#inFlight.clear()
  }

  accept(frame: CallFrame): void {
    const refusal = this.#refusal(frame)
    if (refusal !== null) {
      this.#send({ type: 'reply', call: frame.call, value: null, error: refusal })
      return
    }
    this.#abort ??= new AbortController()
    const { signal } = this.#abort
    this.#inFlight.add(frame.call)
    if (this.#inFlight.size === 1) {
      this.#waitingSince = performance.now()
      this.onWaiting(true)
    }
    this.#answer({ name: frame.name, arguments: frame.arguments, signal }).then(
      value => this.#finish(frame, signal, value, null),
      error => this.#finish(frame, signal, null, error instanceof Error ? error.message : String(error)),
    )
  }

  #finish(frame: CallFrame, signal: AbortSignal, value: unknown, error: string | null): void {
    if (signal.aborted) return
    this.#inFlight.delete(frame.call)
    if (this.#inFlight.size === 0) {
      this.#waitedMs += performance.now() - this.#waitingSince
      this.onWaiting(false)
    }
    this.#send({ type: 'reply', call: frame.call, value, error })
  }

  #refusal(frame: CallFrame): string | null {
    if (frame.id !== this.#cell) return OVER
    return this.#inFlight.size >= MAX_IN_FLIGHT ? `more than ${MAX_IN_FLIGHT} calls in flight` : null
  }
}
