/**
 * One cell from its run frame to its outcome: the ladder.
 *
 * Deadline → interrupt, which keeps the state → a grace → kill of the whole
 * tree. The timers live here, outside the process they apply to.
 */

import { performance } from 'node:perf_hooks'
import type { CellOutcome, Reason, RunRequest, Usage, WorkerCall } from './executor.ts'
import type { Ending } from './exit.ts'
import type { ResultFrame } from './protocol.ts'
import { StepClock } from './step-clock.ts'
import { findDiskBreach, type WatchLimits, watchCell } from './watchdog.ts'
import type { WorkerProcess } from './worker-process.ts'

/** The rules that all cells of a service run under. */
export type RunPolicy = {
  grace_ms: number
  /** From here to the interrupt at the latest, waiting for calls included. */
  ceiling_ms: number
  threads: number
  limits: WatchLimits
}

/**
 * Run one cell in a live worker. The caller replaces the worker when `state_kept` is false.
 *
 * @param onCall Answers calls of agent code; see `OpenRequest`.
 */
export async function runCell(
  worker: WorkerProcess,
  request: RunRequest,
  policy: RunPolicy,
  onCall: (call: WorkerCall) => Promise<unknown>,
): Promise<Omit<CellOutcome, 'restarted'>> {
  const startedAt = performance.now()
  const before = worker.counters()
  const overrun = new Overrun(worker, policy.grace_ms)
  worker.stdout.begin(request.onStdout)
  worker.stderr.begin(undefined)
  const { id, reply } = worker.run(request)
  worker.calls.begin(id, onCall)
  const limit_s = request.limit_ms / 1000
  const cpu_s = limit_s * policy.threads
  const clock = new StepClock(request.limit_ms, () => overrun.begin(id, `it ran longer than its limit of ${limit_s} s`))
  const tooLong = () => overrun.begin(id, 'it took longer than any step may, waiting included')
  const ceiling = setTimeout(tooLong, Math.max(policy.ceiling_ms, 0))
  const tooMuch = () => overrun.begin(id, `it used more than ${cpu_s} s of CPU time`)
  const watch = watchCell(worker, policy.limits, before.cpu_ms, cpu_s * 1000, tooMuch)
  worker.calls.onWaiting = waiting => (waiting ? clock.pause() : clock.resume())
  const end = await reply
  clearTimeout(ceiling)
  overrun.stop()
  clock.stop()
  watch.stop()
  const subcall_wait_ms = worker.calls.waitedMs
  worker.calls.end()
  const wall_ms = performance.now() - startedAt
  const after = worker.counters()
  const usage: Usage = {
    wall_ms,
    cpu_ms: after.cpu_ms === null || before.cpu_ms === null ? null : after.cpu_ms - before.cpu_ms,
    peak_memory_bytes: after.peak_memory_bytes,
    subcall_wait_ms,
    queued_ms: 0,
  }
  if ('reason' in end) return lostOutcome(worker, end, usage)
  const breach = await findDiskBreach(worker, policy.limits)
  if (breach !== null) {
    worker.end(breach)
    return lostOutcome(worker, breach, usage)
  }
  const ignored =
    overrun.cause !== null && end.exception === null
      ? `StepTimeout: ${overrun.cause}, and the step caught the interrupt. Variables are kept.`
      : null
  const { locals, variables, answer, report } = end
  return {
    reason: reasonOf(end, overrun.cause !== null, after.oom_kills > before.oom_kills),
    state_kept: true,
    ...takeOutput(worker, ignored === null ? '' : `${ignored}\n`),
    exception: end.exception ?? ignored,
    locals,
    variables,
    answer,
    final: worker.final,
    report,
    usage,
  }
}

/** The rungs below a deadline: interrupt, grace, kill. The first cause counts. */
class Overrun {
  readonly #worker: WorkerProcess
  readonly #graceMs: number
  #timer: NodeJS.Timeout | undefined
  cause: string | null = null

  constructor(worker: WorkerProcess, graceMs: number) {
    this.#worker = worker
    this.#graceMs = graceMs
  }

  begin(cell: number, cause: string): void {
    if (this.cause !== null) return
    this.cause = cause
    this.#worker.interrupt(cell, cause)
    const sentence = `StepTimeout: ${cause} and could not be interrupted, so its process was ended. Variables are lost.`
    this.#timer = setTimeout(() => this.#worker.end({ reason: 'timeout', sentence }), this.#graceMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

function lostOutcome(
  worker: WorkerProcess,
  { reason, sentence }: Ending,
  usage: Usage,
): Omit<CellOutcome, 'restarted'> {
  const facts = { exception: sentence, locals: {}, variables: [], answer: null, final: worker.final, report: null }
  return { reason, state_kept: false, ...takeOutput(worker, `${sentence}\n`), ...facts, usage }
}

function takeOutput(worker: WorkerProcess, closing: string): Pick<CellOutcome, 'stdout' | 'stderr'> {
  return { stdout: worker.stdout.take(), stderr: worker.stderr.take(closing) }
}

function reasonOf(result: ResultFrame, interrupted: boolean, outOfMemory: boolean): Reason {
  if (interrupted) return 'timeout'
  // A child of the cell was killed for memory while the worker itself lived on.
  if (outOfMemory) return 'memory_limit'
  return result.exception === null ? 'ok' : 'exception'
}
