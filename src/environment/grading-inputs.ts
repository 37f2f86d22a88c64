/** What runs start with, kept for the next submission with the same seed. */

import { LRUCache } from 'lru-cache'
import type { Executor } from '../executor/executor.ts'
import { GradingBudget } from './grading-attempts.ts'
import type { GradingRun } from './grading-seeds.ts'
import { type Files, withTrustedWorker } from './grading-worker.ts'

const MAX_CACHE_BYTES = 64 * 2 ** 20
/** Making the inputs of a run takes a fraction of a second. */
const MAKING_LIMIT_MS = 25_000

/** Makes the inputs of runs, each of them once while it is remembered. */
export class GradingInputs {
  readonly #executor: Executor
  readonly #made: LRUCache<string, Files>
  readonly #making = new Map<string, Promise<Files>>()

  /** @param maxBytes Size of all that is remembered; inputs that are larger are not. */
  constructor(executor: Executor, maxBytes = MAX_CACHE_BYTES) {
    this.#executor = executor
    this.#made = new LRUCache({ maxSize: maxBytes, sizeCalculation: sizeOf })
  }

  /**
   * The files that a run of a task starts with, base64 by name. Callers who ask for the same at once share one making.
   *
   * @param evaluation The Python files of the evaluation of the task.
   * @throws {InfraFailure} If they can't be made.
   */
  async of(task: string, run: GradingRun, evaluation: Files): Promise<Files> {
    const key = `${task}|${run.data_seed}|${run.init_seed}|${run.kind}`
    const made = this.#made.get(key)
    if (made !== undefined) return made
    const running = this.#making.get(key)
    if (running !== undefined) return await running
    const making = this.#make(run, evaluation)
    this.#making.set(key, making)
    try {
      const files = await making
      this.#made.set(key, files)
      return files
    } finally {
      this.#making.delete(key)
    }
  }

  #make(run: GradingRun, evaluation: Files): Promise<Files> {
    // A budget of its own: who asked first may be in more of a hurry than who joins.
    const budget = new GradingBudget(MAKING_LIMIT_MS)
    return budget.attempt(() => withTrustedWorker(this.#executor, evaluation, budget, each => each.makeInputs(run)))
  }
}

const sizeOf = (files: Files): number =>
  Object.entries(files).reduce((sum, [name, text]) => sum + name.length + text.length, 1)
