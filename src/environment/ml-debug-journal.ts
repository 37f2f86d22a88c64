/**
 * Remembers the cells of an episode, so that losing its process costs no more than the call that lost it.
 *
 * State can't be copied out of a process that was killed, but it can be made
 * again: a new process starts like the first one, with the same seed and files,
 * and the cells that shaped the namespace run again in their order.
 */

import { performance } from 'node:perf_hooks'
import type { CellOutcome } from '../executor/executor.ts'

/** Time that all cells together may take to run again, in milliseconds. */
export const RESTORE_LIMIT_MS = 10_000
/** Characters of all cells together that are remembered. */
const MAX_CHARS = 1024 * 1024

/** A cell that shaped the namespace. `code` is null where it can't be run again. */
type Cell = { turn: number; code: string | null; reason: CellOutcome['reason'] }

/** How bringing the state back went: the turns whose cells are not part of the state any more, in order. */
export type Restoration = { missing: number[] }

/** Runs a cell and throws its output away. */
export type Rerun = (code: string, limitMs: number) => Promise<CellOutcome>

/** The cells of one episode. */
export class CellJournal {
  readonly #limitMs: number
  #cells: Cell[] = []
  #chars = 0
  #stale = false

  /** @param limitMs Time that a restoration may take. */
  constructor(limitMs = RESTORE_LIMIT_MS) {
    this.#limitMs = limitMs
  }

  /** The process that held the state is gone, and cells are there to be run again. */
  get stale(): boolean {
    return this.#stale
  }

  /** Whether there is any state that could be lost. */
  get empty(): boolean {
    return this.#cells.length === 0
  }

  /** Tell of a cell that ran in the namespace of the episode. Those that raised count: what they did before stays. */
  add(turn: number, code: string, { reason, state_kept }: CellOutcome): void {
    if (code.trim() === '') return
    // Where a limit ended a cell, running it again would end somewhere else; one that cost the process would again.
    const again = state_kept && (reason === 'ok' || reason === 'exception') && this.#chars + code.length <= MAX_CHARS
    if (again) this.#chars += code.length
    this.#cells.push({ turn, code: again ? code : null, reason })
  }

  /** Tell that the process was lost. */
  lose(): void {
    this.#stale = !this.empty
  }

  /**
   * Run the cells again in a process that has none of them.
   *
   * A cell that ends otherwise than it did, or for which no time is left, is given up for good. One
   * that loses the process again is left out, and the others start over.
   *
   * @returns The outcome of a cell instead, when the service had no process to run it in.
   */
  async restore(rerun: Rerun): Promise<Restoration | CellOutcome> {
    const endsAt = performance.now() + this.#limitMs
    const turns = this.#cells.map(({ turn }) => turn)
    let restored: Cell[] | null = null
    while (restored === null) {
      const round = await this.#replay(rerun, endsAt)
      if (round !== null && 'reason' in round) return round
      restored = round
    }
    this.#cells = restored
    this.#chars = restored.reduce((sum, { code }) => sum + (code?.length ?? 0), 0)
    this.#stale = false
    const back = new Set(restored.map(({ turn }) => turn))
    return { missing: turns.filter(turn => !back.has(turn)) }
  }

  /** One round over the cells: those that are back, or null when the process was lost and a new round has to begin. */
  async #replay(rerun: Rerun, endsAt: number): Promise<Cell[] | CellOutcome | null> {
    const restored: Cell[] = []
    for (const cell of this.#cells) {
      const leftMs = endsAt - performance.now()
      if (cell.code === null || leftMs <= 0) continue
      const outcome = await rerun(cell.code, leftMs)
      if (outcome.reason === 'infra_error') return outcome
      if (!outcome.state_kept) {
        cell.code = null
        return null
      }
      // It died by itself between two cells; whatever came before is gone.
      if (outcome.restarted !== null && restored.length > 0) return null
      if (outcome.reason === cell.reason) restored.push(cell)
    }
    return restored
  }
}
