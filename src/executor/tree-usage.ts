/** Memory and size of a process tree from /proc, for hosts whose cgroups the service may not write. */

import { readdirSync, readFileSync } from 'node:fs'
import { messageOf } from '../errors.ts'

export type TreeUsage = {
  processes: number
  memory_bytes: number
  /** Why a part of the tree could not be read and is not counted; null when all of it is. */
  unread: string | null
}

/** Errors by which /proc says that a process is gone. */
const GONE = new Set(['ENOENT', 'ESRCH', 'ENOTDIR'])

/**
 * Count a tree. Never throws.
 *
 * Memory is the resident anonymous part of each process beyond what the first
 * worker process shared with its zygote, so it reads a little high for trees
 * that fork without writing. Processes that end meanwhile count as nothing.
 *
 * @param init Process id of the episode's init.
 * @param sharedBytes Resident memory that a fresh worker has, in bytes.
 * @param maxProcesses Counting ends once there are more.
 */
export function readTree(init: number, sharedBytes: number, maxProcesses: number): TreeUsage {
  const reader = new ProcReader()
  let memory_bytes = 0
  const seen = new Set<number>()
  const todo = reader.childrenOf(init)
  for (let pid = todo.pop(); pid !== undefined && seen.size <= maxProcesses; pid = todo.pop()) {
    if (seen.has(pid)) continue
    const resident = reader.residentBytes(pid)
    if (resident === null) continue
    seen.add(pid)
    memory_bytes += Math.max(0, resident - sharedBytes)
    todo.push(...reader.childrenOf(pid))
  }
  return { processes: seen.size, memory_bytes, unread: reader.unread }
}

/**
 * Resident memory of a fresh worker: what it shares with its zygote, in bytes.
 * Never throws: 0 when it can't be read, with a warning, so that all of it counts as the episode's.
 */
export function measureShared(init: number): number {
  const reader = new ProcReader()
  const shared = Math.max(0, ...reader.childrenOf(init).map(pid => reader.residentBytes(pid) ?? 0))
  if (reader.unread !== null) process.emitWarning(`the memory of a fresh worker could not be read: ${reader.unread}`)
  return shared
}

/** Reads what is there, and keeps the first reason why something was not to be read. */
class ProcReader {
  unread: string | null = null

  /** Anonymous and shared-memory pages that a process holds, in bytes; null when it is gone. */
  residentBytes(pid: number): number | null {
    const status = this.#attempt(() => readFileSync(`/proc/${pid}/status`, 'utf8'), '')
    if (status === null) return null
    let kib = 0
    for (const line of status.split('\n')) {
      if (line.startsWith('RssAnon:') || line.startsWith('RssShmem:')) kib += Number.parseInt(line.slice(9), 10)
    }
    return kib * 1024
  }

  /** A child belongs to the thread that forked it. */
  childrenOf(pid: number): number[] {
    const tasks = this.#attempt(() => readdirSync(`/proc/${pid}/task`), []) ?? []
    return tasks.flatMap(task => {
      const line = this.#attempt(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'), '') ?? ''
      return line.trim().split(' ').filter(Boolean).map(Number)
    })
  }

  /** Null when the process is gone, `otherwise` when it is there and can't be read. */
  #attempt<Value>(read: () => Value, otherwise: Value): Value | null {
    try {
      return read()
    } catch (error) {
      if (error instanceof Error && 'code' in error && GONE.has(String(error.code))) return null
      this.unread ??= messageOf(error)
      return otherwise
    }
  }
}
