/** Watches a worker for what no timer sees: CPU of many threads, output, and memory where no cgroup counts it. */

import { performance } from 'node:perf_hooks'
import { messageOf } from '../errors.ts'
import type { Ending } from './exit.ts'
import { inspectFolder } from './folder-usage.ts'
import { readTree } from './tree-usage.ts'
import type { WorkerProcess } from './worker-process.ts'

const TICK_MS = 200
/** A look at the work folder is followed by a pause of this many times what it took, so it takes a tenth of a core. */
const PAUSE_FACTOR = 10
const MAX_PAUSE_MS = 2_000
/** Looks in a row that may leave a part of the tree unread, as when the service is out of descriptors for a moment. */
const MAX_UNREAD = 10

/** Ceilings that a watchdog keeps where the kernel doesn't. */
export type WatchLimits = {
  memory_bytes: number
  processes: number
  /** 0 drains without bound. */
  output_bytes: number
  disk_bytes: number
  inodes: number
}

/**
 * Look at a cell every TICK_MS until `stop`, and at its work folder as often as that is cheap.
 *
 * A look that fails ends the worker with `infra_error`: a cell that can't be watched does not go on.
 *
 * @param cpuBeforeMs CPU time of the tree when the cell began, in milliseconds; null where nothing counts it.
 * @param cpuLimitMs CPU time the cell may use, in milliseconds.
 * @param onCpu Called once it has used more, at every look.
 */
export function watchCell(
  worker: WorkerProcess,
  limits: WatchLimits,
  cpuBeforeMs: number | null,
  cpuLimitMs: number,
  onCpu: () => void,
): { stop(): void } {
  let unreadLooks = 0
  const look = () => {
    try {
      const cpu = worker.cpuMs()
      if (cpu !== null && cpuBeforeMs !== null && cpu - cpuBeforeMs > cpuLimitMs) onCpu()
      const breach = findOutputBreach(worker, limits) ?? findTreeBreach(worker, limits)
      unreadLooks = breach?.reason === 'infra_error' ? unreadLooks + 1 : 0
      if (breach !== null && (unreadLooks === 0 || unreadLooks > MAX_UNREAD)) worker.end(breach)
    } catch (error) {
      worker.end(unwatched(messageOf(error)))
    }
  }
  const timer = setInterval(look, TICK_MS)
  const folder = watchFolder(worker, limits)
  const stop = () => {
    clearInterval(timer)
    folder.stop()
  }
  return { stop }
}

/**
 * Look now and then at a worker between two cells, where its processes may still write and allocate.
 *
 * Only what the kernel doesn't limit by itself needs it: a work folder on the host's disk, a tree without a cgroup.
 */
export function watchIdle(worker: WorkerProcess, limits: WatchLimits): { stop(): void } {
  const folder = watchFolder(worker, limits, MAX_PAUSE_MS)
  void worker.ended.then(() => folder.stop())
  if (worker.accounted) return folder
  const look = () => {
    const breach = findTreeBreach(worker, limits)
    // What can't be read now is looked at again; nothing runs that waits for an answer.
    if (breach !== null && breach.reason !== 'infra_error') worker.end(breach)
  }
  const timer = setInterval(look, MAX_PAUSE_MS)
  void worker.ended.then(() => clearInterval(timer))
  const stop = () => {
    clearInterval(timer)
    folder.stop()
  }
  return { stop }
}

/** One look at a time; the next one after a pause that grows with what the last one took. */
function watchFolder(worker: WorkerProcess, limits: WatchLimits, leastPauseMs = TICK_MS): { stop(): void } {
  if (worker.workFolder === null) return { stop: () => undefined }
  const stopped = new AbortController()
  let timer: NodeJS.Timeout
  const look = async () => {
    const startedAt = performance.now()
    const breach = await findDiskBreach(worker, limits, stopped.signal)
    if (stopped.signal.aborted) return
    if (breach !== null) worker.end(breach)
    else timer = setTimeout(look, Math.max(leastPauseMs, pauseAfter(performance.now() - startedAt)))
  }
  timer = setTimeout(look, leastPauseMs)
  const stop = () => {
    stopped.abort()
    clearTimeout(timer)
  }
  return { stop }
}

function pauseAfter(lookMs: number): number {
  return Math.min(Math.max(TICK_MS, lookMs * PAUSE_FACTOR), MAX_PAUSE_MS)
}

function findOutputBreach(worker: WorkerProcess, limits: WatchLimits): Ending | null {
  const written = worker.stdout.totalBytes + worker.stderr.totalBytes
  if (limits.output_bytes === 0 || written <= limits.output_bytes) return null
  return { reason: 'output_limit', sentence: `OutputLimit: the step wrote more than ${limits.output_bytes} bytes` }
}

function findTreeBreach(worker: WorkerProcess, limits: WatchLimits): Ending | null {
  if (worker.accounted) return null
  const tree = readTree(worker.pid, worker.sharedBytes, limits.processes)
  if (tree.memory_bytes > limits.memory_bytes) {
    return {
      reason: 'memory_limit',
      sentence: `MemoryLimit: the episode used more than ${limits.memory_bytes} bytes of memory and was ended`,
    }
  }
  if (tree.processes > limits.processes) {
    return {
      reason: 'process_limit',
      sentence: `ProcessLimit: the episode had more than ${limits.processes} processes and was ended`,
    }
  }
  return tree.unread === null ? null : unwatched(tree.unread)
}

/**
 * Whether a work folder on the host's disk is past its limits; a file system of its own has them built in.
 *
 * Never rejects, and answers within seconds whatever the folder holds.
 *
 * @param stopped Once aborted, the answer is null.
 */
export async function findDiskBreach(
  worker: WorkerProcess,
  limits: WatchLimits,
  stopped: AbortSignal = new AbortController().signal,
): Promise<Ending | null> {
  if (worker.workFolder === null) return null
  const finding = await inspectFolder(worker.workFolder, limits, stopped)
  if (finding.verdict === 'past') return { reason: 'disk_limit', sentence: `DiskLimit: the work folder ${finding.why}` }
  if (finding.verdict === 'unknown') return unwatched(`the work folder could not be measured: ${finding.why}`)
  return null
}

function unwatched(why: string): Ending {
  return { reason: 'infra_error', sentence: `InfraError: the step could not be watched: ${why}` }
}
