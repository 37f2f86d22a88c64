/** The worker of an episode, with the promise that what earlier calls set up is there at every call. */

import { performance } from 'node:perf_hooks'
import { ServiceError } from '../errors.ts'
import type { CellOutcome, EpisodeWorker, InstrumentCall } from '../executor/executor.ts'
import type { JsonObject } from './environment.ts'
import { CellJournal, type Restoration } from './ml-debug-journal.ts'
import { lostNote, ranWithoutNote, restoredNote } from './ml-debug-text.ts'

/** Of the ceiling of a step, what ends a call beside its limit: the interrupt, the kill, the answer. */
const RESERVED_MS = 5_000
const LEAST_CALL_MS = 1_000

/** What a tool asks for. */
export type ToolCall = {
  turn: number
  /** Runs in the namespace of the episode, or in one of its own when `fresh`. */
  code: string
  instrument?: InstrumentCall
  fresh: boolean
  limitMs: number
}

export type ToolOutcome = {
  outcome: CellOutcome
  /** The limit that the call ran under, in milliseconds. */
  limitMs: number
  /** What the agent is told about the state of its variables. */
  notes: string[]
  /** The same for `metadata`; empty when nothing happened to the state. */
  facts: JsonObject
}

/** Runs the calls of one episode, one at a time. */
export class MlDebugWorker {
  readonly #worker: EpisodeWorker
  readonly #ceilingMs: number
  readonly #journal = new CellJournal()

  /** @param ceilingMs Longest time for a call, restoring included. */
  constructor(worker: EpisodeWorker, ceilingMs: number) {
    this.#worker = worker
    this.#ceilingMs = ceilingMs
  }

  /** Run a call. Where the service has no process for it, the outcome is `infra_error`. */
  async run({ turn, code, instrument, fresh, limitMs }: ToolCall): Promise<ToolOutcome> {
    const startedAt = performance.now()
    // Before a fresh call too, once the state is lost: what it draws at random the cells would not draw again.
    const restoration = fresh && !this.#journal.stale ? null : await this.#revive()
    const restoreMs = performance.now() - startedAt
    if (restoration !== null && 'reason' in restoration) {
      return { outcome: restoration, limitMs, notes: [], facts: {} }
    }
    const leftMs = Math.max(this.#ceilingMs - restoreMs - RESERVED_MS, LEAST_CALL_MS)
    const limit_ms = Math.min(limitMs, leftMs)
    const request = { code, limit_ms, fresh, ...(instrument !== undefined && { instrument }) }
    const outcome = await this.#worker.run(request)
    const hadState = !this.#journal.empty
    if (!fresh) this.#journal.add(turn, code, outcome)
    const notes = restoration === null ? [] : [restoredNote(restoration)]
    if (outcome.restarted !== null && hadState) notes.push(ranWithoutNote(outcome.restarted))
    if (!outcome.state_kept) notes.push(lostNote(outcome, hadState))
    if (!outcome.state_kept || outcome.restarted !== null) this.#journal.lose()
    return { outcome, limitMs: limit_ms, notes, facts: restoration === null ? {} : told(restoration, restoreMs) }
  }

  /** End the process. Idempotent. */
  close(): void {
    this.#worker.close()
  }

  /** Bring back what a lost process held; null when nothing was lost, an outcome when the service has no process. */
  async #revive(): Promise<Restoration | CellOutcome | null> {
    if (this.#journal.empty) return null
    if (!this.#journal.stale) {
      // Processes also end between calls, by a thread that the agent left running.
      if (await this.#isThere()) return null
      this.#journal.lose()
    }
    return await this.#journal.restore((code, limit_ms) => this.#worker.run({ code, limit_ms }))
  }

  async #isThere(): Promise<boolean> {
    try {
      return (await this.#worker.lookup([])).state_kept
    } catch (error) {
      // There was no process to replace a lost one with; the next cell asks again, and tells if there still is none.
      if (error instanceof ServiceError) return false
      throw error
    }
  }
}

const told = ({ missing }: Restoration, restoreMs: number): JsonObject => ({
  state_restored: missing.length === 0,
  missing_turns: missing,
  restore_ms: restoreMs,
})
