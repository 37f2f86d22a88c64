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

export type RunPolicy = {
  grace_ms: number
  /** Nothing may take longer than this, waiting for calls included. */
  ceiling_ms: number
  threads: number
  limits: WatchLimits
}

/** Run one cell in a live worker. The caller replaces the worker when `state_kept` is false. */
export async function runCell(
  worker: WorkerProcess,
  request: RunRequest,
  policy: RunPolicy,
  onCall: (call: WorkerCall) => Promise<unknown>,
): Promise<CellOutcome> {
  const startedAt = performance.now()
  const cpuBeforeMs = worker.cpuMs()
  const oomKillsBefore = worker.oomKills
  worker.stdout.begin(request.onStdout)
  worker.stderr.begin(undefined)
  const { id, reply } = worker.run(request.code, request.limit_ms)
  worker.calls.begin(id, onCall)
  const overrun: Ending = { reason: 'timeout', sentence: timeoutSentence(request.limit_ms) }
  let interrupted = false
  let graceTimer: NodeJS.Timeout | undefined
  const interrupt = () => {
    if (interrupted) return
    interrupted = true
    worker.interrupt(id)
    graceTimer = setTimeout(() => worker.end(overrun), policy.grace_ms)
  }
  const clock = new StepClock(request.limit_ms, interrupt)
  const ceiling = setTimeout(interrupt, Math.max(policy.ceiling_ms - policy.grace_ms, 0))
  const watch = watchCell(worker, policy.limits, cpuBeforeMs, request.limit_ms * policy.threads, interrupt)
  worker.calls.onWaiting = waiting => (waiting ? clock.pause() : clock.resume())
  const end = await reply
  clearTimeout(ceiling)
  clearTimeout(graceTimer)
  clock.stop()
  watch.stop()
  const subcall_wait_ms = worker.calls.waitedMs
  worker.calls.end()
  const wall_ms = performance.now() - startedAt
  const after = worker.counters()
  const usage: Usage = {
    wall_ms,
    cpu_ms: after.cpu_ms === null || cpuBeforeMs === null ? null : after.cpu_ms - cpuBeforeMs,
    peak_memory_bytes: after.peak_memory_bytes,
    subcall_wait_ms,
    queued_ms: 0,
  }
  const { final } = worker
  if ('reason' in end) return lostOutcome(worker, end, usage)
  const breach = findDiskBreach(worker, policy.limits)
  if (breach !== null) {
    worker.end(breach)
    return lostOutcome(worker, breach, usage)
  }
  const { locals, variables, answer } = end
  const ignored = interrupted && end.exception === null ? ignoredSentence(request.limit_ms) : null
  const exception = end.exception ?? ignored
  const reason = reasonOf(end, interrupted, after.oom_kills > oomKillsBefore)
  const output = takeOutput(worker, ignored === null ? '' : `${ignored}\n`)
  return { reason, state_kept: true, ...output, exception, locals, variables, answer, final, usage }
}

function lostOutcome(worker: WorkerProcess, { reason, sentence }: Ending, usage: Usage): CellOutcome {
  const facts = { exception: sentence, locals: {}, variables: [], answer: null, final: worker.final }
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

function ignoredSentence(limitMs: number): string {
  return `StepTimeout: the step ran longer than its limit of ${limitMs / 1000} s and caught the interrupt. Variables are kept.`
}

function timeoutSentence(limitMs: number): string {
  return `StepTimeout: the step ran longer than its limit of ${limitMs / 1000} s and could not be interrupted, so its process was ended. Variables are lost.`
}
