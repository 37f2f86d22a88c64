/** Watches a running cell for what no timer sees: CPU of many threads, output, and memory where no cgroup counts it. */

import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Ending } from './exit.ts'
import { readTree } from './tree-usage.ts'
import type { WorkerProcess } from './worker-process.ts'

const TICK_MS = 200

export type WatchLimits = {
  memory_bytes: number
  processes: number
  /** 0 drains without bound. */
  output_bytes: number
  disk_bytes: number
  inodes: number
}

/**
 * Look at a cell every TICK_MS until `stop`.
 *
 * @param cpuBeforeMs CPU time of the tree when the cell began, in milliseconds; null where nothing counts it.
 * @param cpuLimitMs CPU time the cell may use, in milliseconds.
 * @param onCpu Called once when it has used more.
 */
export function watchCell(
  worker: WorkerProcess,
  limits: WatchLimits,
  cpuBeforeMs: number | null,
  cpuLimitMs: number,
  onCpu: () => void,
): { stop(): void } {
  const look = () => {
    const cpu = worker.cpuMs()
    if (cpu !== null && cpuBeforeMs !== null && cpu - cpuBeforeMs > cpuLimitMs) onCpu()
    const breach = findBreach(worker, limits)
    if (breach !== null) worker.end(breach)
  }
  const timer = setInterval(look, TICK_MS)
  return { stop: () => clearInterval(timer) }
}

function findBreach(worker: WorkerProcess, limits: WatchLimits): Ending | null {
  const written = worker.stdout.totalBytes + worker.stderr.totalBytes
  if (limits.output_bytes > 0 && written > limits.output_bytes) {
    return { reason: 'output_limit', sentence: `OutputLimit: the step wrote more than ${limits.output_bytes} bytes` }
  }
  const disk = findDiskBreach(worker, limits)
  if (disk !== null) return disk
  if (worker.accounted) return null
  const tree = readTree(worker.pid, worker.sharedBytes)
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
  return null
}

/** Whether a work folder on the host's disk has grown past its limits; a file system of its own has them built in. */
export function findDiskBreach(worker: WorkerProcess, { disk_bytes, inodes }: WatchLimits): Ending | null {
  if (worker.workFolder === null) return null
  const used = folderUsage(worker.workFolder, inodes)
  if (used.bytes <= disk_bytes && used.files <= inodes) return null
  const sentence = `DiskLimit: the work folder grew past ${disk_bytes} bytes or ${inodes} files`
  return { reason: 'disk_limit', sentence }
}

/** Size of a folder; stops counting once there are more than `maxFiles` entries. */
function folderUsage(root: string, maxFiles: number): { bytes: number; files: number } {
  let bytes = 0
  let files = 0
  const todo = [root]
  for (let folder = todo.pop(); folder !== undefined && files <= maxFiles; folder = todo.pop()) {
    if (!existsSync(folder)) continue
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      files += 1
      const path = join(folder, entry.name)
      if (entry.isDirectory()) todo.push(path)
      else bytes += (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512
    }
  }
  return { bytes, files }
}
