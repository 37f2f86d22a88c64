/** The worker of one episode as an environment sees it: processes come and go behind it. */

import { performance } from 'node:perf_hooks'
import { messageOf, ServiceError } from '../errors.ts'
import { type RunPolicy, runCell } from './cell-run.ts'
import type { CellOutcome, EpisodeWorker, OpenRequest, RunRequest } from './executor.ts'
import { retire } from './pool.ts'
import { watchIdle } from './watchdog.ts'
import { KILL_TIMEOUT_MS, LOOKUP_TIMEOUT_MS, type WorkerProcess } from './worker-process.ts'

const LEAST_RUN_MS = 1_000

/** Where processes come from and what rules they run under. */
export type WorkerSource = {
  acquire(): Promise<{ worker: WorkerProcess; queuedMs: number }>
  policy: RunPolicy
}

/** An `EpisodeWorker` over the processes of a pool. */
export class PooledEpisodeWorker implements EpisodeWorker {
  readonly #source: WorkerSource
  readonly #request: OpenRequest
  #process: Promise<WorkerProcess>
  #openingVariables: string[] = []
  #variables: string[] = []
  #queuedMs = 0
  /** Why the process was gone when the coming cell asked for it. */
  #lost: string | null = null
  #idleWatch: { stop(): void } | undefined
  #closed = false

  private constructor(source: WorkerSource, request: OpenRequest) {
    this.#source = source
    this.#request = request
    this.#process = this.#take()
  }

  /** @throws {ServiceError} as `Executor.open`. */
  static async open(source: WorkerSource, request: OpenRequest): Promise<PooledEpisodeWorker> {
    const worker = new PooledEpisodeWorker(source, request)
    await worker.#process
    worker.#openingVariables = worker.#variables
    return worker
  }

  get variables(): string[] {
    return this.#variables
  }

  async run(request: RunRequest): Promise<CellOutcome> {
    const { policy } = this.#source
    const startedAt = performance.now()
    const reserved = policy.grace_ms + KILL_TIMEOUT_MS + LOOKUP_TIMEOUT_MS
    // The least time it makes sense to start a cell with; waiting is the service's fault and not charged to the cell.
    const least = Math.min(request.limit_ms, LEAST_RUN_MS)
    let worker: WorkerProcess
    try {
      worker = await within(this.#living(), policy.ceiling_ms - reserved - least)
    } catch (error) {
      return infraOutcome(error, performance.now() - startedAt, this.#openingVariables)
    }
    const waited_ms = performance.now() - startedAt
    const queued_ms = this.#queuedMs + waited_ms
    const restarted = this.#lost
    this.#queuedMs = 0
    this.#lost = null
    this.#idleWatch?.stop()
    const left = { ...policy, ceiling_ms: policy.ceiling_ms - waited_ms - reserved }
    const outcome: CellOutcome = { ...(await runCell(worker, request, left, this.#request.onCall)), restarted }
    outcome.usage.queued_ms = queued_ms
    if (outcome.state_kept) {
      this.#variables = outcome.variables
      if (!this.#closed) this.#idleWatch = watchIdle(worker, policy.limits)
      return outcome
    }
    this.#replace(worker)
    return { ...outcome, variables: this.#openingVariables }
  }

  async lookup(names: string[]): Promise<{ value: string | null; state_kept: boolean }> {
    const worker = await this.#process
    try {
      return { value: await worker.lookup(names), state_kept: true }
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'worker_start_failed') throw error
      this.#replace(worker)
      return { value: null, state_kept: false }
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#idleWatch?.stop()
    this.#process.then(
      worker => retire(worker),
      // Nothing was taken, so there is nothing to end.
      () => undefined,
    )
  }

  /** The process, or another one where it died while nobody looked. */
  async #living(): Promise<WorkerProcess> {
    if (this.#closed) throw new ServiceError('shutting_down', 'the episode is closed')
    const worker = await this.#process.catch(() => this.#retake())
    if (worker.alive) return worker
    this.#lost = (await worker.ended).sentence
    this.#replace(worker)
    return await this.#process
  }

  /** End a process and get the next one on its way: it is opened by the time the next cell comes. */
  #replace(worker: WorkerProcess): void {
    retire(worker)
    if (this.#closed) return
    this.#retake().catch(() => {
      // The next cell finds the rejected promise, asks once more and reports what it gets.
      this.#queuedMs = 0
    })
  }

  #retake(): Promise<WorkerProcess> {
    this.#process = this.#take()
    return this.#process
  }

  async #take(): Promise<WorkerProcess> {
    const { worker, queuedMs } = await this.#source.acquire()
    try {
      this.#variables = await worker.open(this.#request, this.#source.policy.threads)
      this.#queuedMs += queuedMs
      return worker
    } catch (error) {
      retire(worker)
      throw error
    }
  }
}

/** A cell that never ran, because the service had no process for it. */
function infraOutcome(error: unknown, queued_ms: number, variables: string[]): CellOutcome {
  const sentence = `InfraError: ${messageOf(error)}`
  const nothing = { text: '', total_chars: 0, total_bytes: 0, truncated: false }
  const told = {
    text: sentence,
    total_chars: sentence.length,
    total_bytes: Buffer.byteLength(sentence),
    truncated: false,
  }
  return {
    reason: 'infra_error',
    state_kept: false,
    restarted: null,
    stdout: nothing,
    stderr: told,
    exception: sentence,
    locals: {},
    variables,
    final: null,
    answer: null,
    report: null,
    usage: { wall_ms: 0, cpu_ms: null, peak_memory_bytes: null, subcall_wait_ms: 0, queued_ms },
  }
}

/** Wait for a worker, but not for ever. @throws {ServiceError} `queue_full` when `ms` have passed. */
function within<Result>(call: Promise<Result>, ms: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new ServiceError('queue_full', 'no worker became free in time for this step'))
    const timer = setTimeout(late, Math.max(ms, 0))
    call.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
