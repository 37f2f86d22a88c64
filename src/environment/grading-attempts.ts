/** What one grading may still spend: its time, and how often a failure of ours is tried again. */

import { performance } from 'node:perf_hooks'

/** The service failed, which says nothing about the submission. `lasting` ones fail again when tried again. */
export class InfraFailure extends Error {
  override readonly name = 'InfraFailure'
  readonly lasting: boolean

  constructor(message: string, options: { lasting?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.lasting = options.lasting ?? false
  }
}

/** The grading can't end in its time: too much is being graded. */
export class Busy extends InfraFailure {
  constructor() {
    super('busy: the submission could not be graded within its time; grade it again later', { lasting: true })
  }
}

/** Failures of ours that one grading survives. */
const MAX_RETRIES = 2

/** The budget of one grading. */
export class GradingBudget {
  readonly #deadline: number
  #retries = MAX_RETRIES

  /** @param budgetMs Time from now on until the grade has to be there. */
  constructor(budgetMs: number) {
    this.#deadline = performance.now() + budgetMs
  }

  /** Milliseconds until the deadline; 0 past it. */
  get leftMs(): number {
    return Math.max(0, this.#deadline - performance.now())
  }

  /** Wait for something until the deadline. @throws {InfraFailure} `Busy` past it; what was begun goes on, unheard. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Busy()), this.leftMs)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Do something again while it fails for reasons of ours.
   *
   * @throws {InfraFailure} The last one, when retries or time are used up; `Busy` when there is no time to begin.
   */
  async attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      if (this.leftMs === 0) throw new Busy()
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof InfraFailure) || error.lasting || this.#retries === 0) throw error
        this.#retries -= 1
      }
    }
  }
}
