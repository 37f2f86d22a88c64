/** Memory and size of a process tree from /proc, for hosts whose cgroups the service may not write. */

import { readFileSync } from 'node:fs'

export type TreeUsage = { processes: number; memory_bytes: number }

/**
 * Count a tree.
 *
 * Memory is the resident anonymous part of each process beyond what the first
 * worker process shared with its zygote, so it reads a little high for trees
 * that fork without writing. Processes that end meanwhile count as nothing.
 *
 * @param init Process id of the episode's init.
 * @param sharedBytes Resident memory that a fresh worker has, in bytes.
 */
export function readTree(init: number, sharedBytes: number): TreeUsage {
  let memory_bytes = 0
  let processes = 0
  const todo = childrenOf(init)
  for (let pid = todo.pop(); pid !== undefined; pid = todo.pop()) {
    processes += 1
    memory_bytes += Math.max(0, residentBytes(pid) - sharedBytes)
    todo.push(...childrenOf(pid))
  }
  return { processes, memory_bytes }
}

/** Resident memory of a fresh worker: what it shares with its zygote. */
export function measureShared(init: number): number {
  return Math.max(0, ...childrenOf(init).map(residentBytes))
}

/** Anonymous and shared-memory pages that a process holds, in bytes; 0 when it is gone. */
export function residentBytes(pid: number): number {
  const status = readProc(`/proc/${pid}/status`)
  let kib = 0
  for (const line of status.split('\n')) {
    if (line.startsWith('RssAnon:') || line.startsWith('RssShmem:')) kib += Number.parseInt(line.slice(9), 10)
  }
  return kib * 1024
}

export function childrenOf(pid: number): number[] {
  return readProc(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number)
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return ''
    throw error
  }
}
