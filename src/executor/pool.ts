/** Warm spares of one preload set: forked, isolated and connected ahead of demand. */

import { performance } from 'node:perf_hooks'
import { messageOf, ServiceError } from '../errors.ts'
import { Zygote, type ZygoteOptions } from '../launcher/zygote.ts'
import type { ReadyFrame } from '../launcher/zygote-frames.ts'
import { WorkerProcess } from './worker-process.ts'

/** What a pool keeps ready, and how long it lets others wait for it. */
export type PoolOptions = {
  zygote: ZygoteOptions
  spares: number
  queueLimit: number
  queueTimeoutMs: number
  /** Characters of each stream kept per cell. */
  keepChars: number
}

type Waiter = { resolve: (worker: WorkerProcess) => void; reject: (error: ServiceError) => void; timer: NodeJS.Timeout }

/** Forks asked for at once; more would only contend for the zygote's memory map. */
const MAX_STARTING = 2
/** Failed starts in a row after which waiting opens are told why instead of waiting on. */
const MAX_FAILURES = 3
const ZYGOTE_RETRY_MS = 250
/** Pause after MAX_FAILURES starts failed in a row. */
const START_RETRY_MS = 1_000
/** A fork takes a core for a while: let the open that took a spare have it first. */
const REFILL_DELAY_MS = 5

/** The workers of one zygote that nobody has taken yet, and the queue for them. */
export class Pool {
  readonly #options: PoolOptions
  #zygote: Zygote
  #spares: WorkerProcess[] = []
  #waiters: Waiter[] = []
  #refillTimer: NodeJS.Timeout | undefined
  #starting = 0
  #failures = 0
  #replacing: Promise<void> | undefined
  #closing = false

  private constructor(options: PoolOptions, zygote: Zygote) {
    this.#options = options
    this.#zygote = zygote
    this.#watch(zygote)
    this.#refill()
  }

  /** @throws {ServiceError} as `Zygote.start`. */
  static async start(options: PoolOptions): Promise<Pool> {
    return new Pool(options, await Zygote.start(options.zygote))
  }

  get ready(): ReadyFrame {
    return this.#zygote.ready
  }

  /** Whether another worker could be forked now. */
  get forking(): boolean {
    return this.#zygote.alive && !this.#closing
  }

  get counts(): { spare: number; starting: number; queued: number } {
    return { spare: this.#spares.length, starting: this.#starting, queued: this.#waiters.length }
  }

  /**
   * Take a spare, or wait for one.
   *
   * @throws {ServiceError} `queue_full` when too many wait already or the wait
   * took too long, `worker_start_failed` when none can be started, `shutting_down`.
   */
  async acquire(): Promise<{ worker: WorkerProcess; queuedMs: number }> {
    if (this.#closing) throw new ServiceError('shutting_down', 'the service is shutting down')
    const startedAt = performance.now()
    const spare = this.#takeSpare()
    if (spare !== undefined) return { worker: spare, queuedMs: 0 }
    if (this.#waiters.length >= this.#options.queueLimit) {
      throw new ServiceError('queue_full', `${this.#waiters.length} episodes wait for a worker already`)
    }
    const worker = await new Promise<WorkerProcess>((resolve, reject) => {
      const waiter: Waiter = {
        resolve,
        reject,
        timer: setTimeout(() => this.#giveUp(waiter), this.#options.queueTimeoutMs),
      }
      this.#waiters.push(waiter)
      this.#refill()
    })
    return { worker, queuedMs: performance.now() - startedAt }
  }

  /** Ends every worker; resolves when the zygote is gone. Idempotent. */
  async close(): Promise<void> {
    this.#closing = true
    this.#failWaiters(new ServiceError('shutting_down', 'the service is shutting down'))
    for (const spare of this.#spares.splice(0)) retire(spare)
    this.#zygote.close()
    await this.#zygote.ended
    // A replacement that was starting sees that the pool closes, and ends its zygote.
    await this.#replacing
  }

  #takeSpare(): WorkerProcess | undefined {
    for (let spare = this.#spares.shift(); spare !== undefined; spare = this.#spares.shift()) {
      this.#refillSoon()
      if (spare.alive) return spare
      retire(spare)
    }
    return undefined
  }

  #refill(): void {
    while (!this.#closing && this.#replacing === undefined && this.#starting < MAX_STARTING && this.#wanted() > 0) {
      this.#starting += 1
      void this.#startOne()
    }
  }

  #refillSoon(): void {
    this.#refillTimer ??= setTimeout(() => {
      this.#refillTimer = undefined
      this.#refill()
    }, REFILL_DELAY_MS).unref()
  }

  #wanted(): number {
    return this.#options.spares + this.#waiters.length - this.#spares.length - this.#starting
  }

  async #startOne(): Promise<void> {
    try {
      const worker = await WorkerProcess.ready(
        await this.#zygote.fork(),
        { keepChars: this.#options.keepChars, memoryBytes: this.#options.zygote.limits.memory_bytes },
        this.#zygote.ready.required,
      )
      this.#failures = 0
      this.#starting -= 1
      this.#place(worker)
    } catch (cause) {
      this.#starting -= 1
      if (this.#closing) return
      this.#failures += 1
      this.#options.zygote.onLog(`a worker could not be started: ${messageOf(cause)}`)
      if (this.#failures >= MAX_FAILURES) {
        this.#failures = 0
        this.#failWaiters(new ServiceError('worker_start_failed', 'no worker could be started', { cause }))
        setTimeout(() => this.#refill(), START_RETRY_MS).unref()
        return
      }
    }
    this.#refill()
  }

  #place(worker: WorkerProcess): void {
    if (this.#closing) {
      retire(worker)
      return
    }
    const waiter = this.#waiters.shift()
    if (waiter === undefined) {
      this.#spares.push(worker)
      void worker.ended.then(() => this.#replaceSpare(worker))
      return
    }
    clearTimeout(waiter.timer)
    waiter.resolve(worker)
  }

  /** A spare that died by itself, for example of the host's memory; one that was taken is no spare any more. */
  #replaceSpare(worker: WorkerProcess): void {
    if (!this.#spares.includes(worker)) return
    this.#spares = this.#spares.filter(spare => spare !== worker)
    retire(worker)
    this.#refillSoon()
  }

  #giveUp(waiter: Waiter): void {
    this.#waiters = this.#waiters.filter(other => other !== waiter)
    waiter.reject(new ServiceError('queue_full', `no worker became free within ${this.#options.queueTimeoutMs} ms`))
  }

  #failWaiters(error: ServiceError): void {
    for (const waiter of this.#waiters.splice(0)) {
      clearTimeout(waiter.timer)
      waiter.reject(error)
    }
  }

  #watch(zygote: Zygote): void {
    void zygote.ended.then(() => {
      // Its spares live on; only new ones need another zygote.
      if (!this.#closing) this.#replacing = this.#replaceZygote()
    })
  }

  async #replaceZygote(): Promise<void> {
    for (let attempt = 1; !this.#closing; attempt++) {
      try {
        this.#zygote = await Zygote.start(this.#options.zygote)
        break
      } catch (cause) {
        this.#options.zygote.onLog(`the zygote could not be replaced: ${messageOf(cause)}`)
        this.#failWaiters(new ServiceError('worker_start_failed', 'the Python zygote can not be started', { cause }))
        await new Promise(resolve => setTimeout(resolve, ZYGOTE_RETRY_MS * Math.min(attempt, 20)).unref())
      }
    }
    this.#replacing = undefined
    if (this.#closing) {
      this.#zygote.close()
      await this.#zygote.ended
      return
    }
    this.#watch(this.#zygote)
    this.#refill()
  }
}

/** End a worker that serves no episode any more. */
export function retire(worker: WorkerProcess): void {
  worker.end({ reason: 'infra_error', sentence: 'the episode is over' })
  worker.release()
}
