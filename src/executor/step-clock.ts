/** The deadline of one cell, kept outside the process it applies to. */

import { performance } from 'node:perf_hooks'

/** Fires once when the cell has used its limit; time spent paused is not charged. */
export class StepClock {
  readonly #onDeadline: () => void
  #leftMs: number
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined

  /** @param limitMs Time the cell may use, in milliseconds. */
  constructor(limitMs: number, onDeadline: () => void) {
    this.#leftMs = limitMs
    this.#onDeadline = onDeadline
    this.resume()
  }

  pause(): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#leftMs -= performance.now() - this.#startedAt
  }

  resume(): void {
    if (this.#timer !== undefined) return
    this.#startedAt = performance.now()
    this.#timer = setTimeout(this.#onDeadline, Math.max(this.#leftMs, 0))
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
