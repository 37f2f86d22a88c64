/** Limits how many scripts run at once. Who asked for grading first is served first, whichever of its runs is due. */

type Waiter = { ticket: number; start: () => void }

/** A ticket's place in the line; lower ones go first. */
export type Ticket = number

/** Slots for scripts that run at the same time. */
export class GradingSlots {
  #free: number
  #tickets = 0
  /** Sorted by ticket. */
  readonly #waiters: Waiter[] = []

  /** @param count Scripts that may run at once, at least 1. */
  constructor(count: number) {
    this.#free = count
  }

  /** A place in the line, for all runs of one grading. */
  ticket(): Ticket {
    this.#tickets += 1
    return this.#tickets
  }

  /**
   * Do something in a slot, or leave the line.
   *
   * @param waitMs Longest wait for the slot.
   * @returns Null when no slot became free in time, and `work` was not begun.
   */
  async run<Result>(ticket: Ticket, waitMs: number, work: () => Promise<Result>): Promise<Result | null> {
    if (!(await this.#enter(ticket, waitMs))) return null
    try {
      return await work()
    } finally {
      this.#leave()
    }
  }

  #enter(ticket: Ticket, waitMs: number): Promise<boolean> {
    if (this.#free > 0) {
      this.#free -= 1
      return Promise.resolve(true)
    }
    return new Promise(resolve => {
      const waiter: Waiter = {
        ticket,
        start: () => {
          clearTimeout(timer)
          resolve(true)
        },
      }
      const timer = setTimeout(
        () => {
          this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
          resolve(false)
        },
        Math.max(0, waitMs),
      )
      const later = this.#waiters.findIndex(other => other.ticket > ticket)
      this.#waiters.splice(later === -1 ? this.#waiters.length : later, 0, waiter)
    })
  }

  #leave(): void {
    const next = this.#waiters.shift()
    if (next === undefined) this.#free += 1
    else next.start()
  }
}
