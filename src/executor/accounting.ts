/** What the kernel counts for one process tree, read by the service itself. */

import { closeSync, openSync, readSync } from 'node:fs'
import type { Accounting, ExitReport } from '../launcher/zygote-frames.ts'

export type Counters = {
  cpu_ms: number | null
  peak_memory_bytes: number | null
  /** Processes of the tree that the kernel killed for its memory limit. */
  oom_kills: number
}

const NS_PER_MS = 1e6
const US_PER_MS = 1e3
/** Longest of the files: memory.events and cpu.stat have a dozen short lines. */
const FILE_BYTES = 2048
/** Nothing is killed for memory while the peak is below this share of the limit. */
const NEAR_LIMIT = 0.75
const UNREADABLE = new Set(['ENOENT', 'ENODEV', 'EMFILE', 'ENFILE'])

/** The counters of a live tree. The files stay open: a step reads them twice. */
export class TreeCounters {
  readonly #limitBytes: number
  readonly #cpu: CounterFile
  readonly #peak: CounterFile
  readonly #oom: CounterFile

  /** @param limitBytes Memory limit of the tree. */
  constructor(files: Accounting, limitBytes: number) {
    this.#limitBytes = limitBytes
    this.#cpu = new CounterFile(files.cpu)
    this.#peak = new CounterFile(files.memory_peak)
    this.#oom = new CounterFile(files.oom)
  }

  /** Null or zero where the host has no counter, or the tree is gone. */
  read(): Counters {
    const peak = this.#peak.read()
    const peak_memory_bytes = peak === null ? null : Number(peak)
    const near = peak_memory_bytes !== null && peak_memory_bytes > this.#limitBytes * NEAR_LIMIT
    return {
      cpu_ms: this.cpuMs(),
      peak_memory_bytes,
      oom_kills: near ? (field(this.#oom.read(), 'oom_kill') ?? 0) : 0,
    }
  }

  /** CPU time of the tree so far, in milliseconds; null where the host has no counter. */
  cpuMs(): number | null {
    const text = this.#cpu.read()
    if (text === null) return null
    const used_us = field(text, 'usage_usec')
    return used_us === null ? Number(text) / NS_PER_MS : used_us / US_PER_MS
  }

  close(): void {
    for (const file of [this.#cpu, this.#peak, this.#oom]) file.close()
  }
}

/** The kernel's last word on a tree that is gone; null when nobody saw it end. */
export function countersOf(report: ExitReport | null): Counters {
  if (report === null) return { cpu_ms: null, peak_memory_bytes: null, oom_kills: 0 }
  const { cpu_ns, peak_memory_bytes, oom_kills } = report
  return { cpu_ms: cpu_ns === null ? null : cpu_ns / NS_PER_MS, peak_memory_bytes, oom_kills }
}

/** One file of a cgroup, opened at its first reading. */
class CounterFile {
  readonly #path: string | null
  #descriptor: number | undefined
  #closed = false

  constructor(path: string | null) {
    this.#path = path
  }

  read(): string | null {
    if (this.#path === null || this.#closed) return null
    try {
      this.#descriptor ??= openSync(this.#path, 'r')
      const length = readSync(this.#descriptor, buffer, 0, FILE_BYTES, 0)
      return buffer.toString('latin1', 0, length)
    } catch (error) {
      // The group is removed with its tree, possibly between two readings; without descriptors nothing can be read.
      if (error instanceof Error && 'code' in error && UNREADABLE.has(String(error.code))) return null
      throw error
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
    this.#closed = true
  }
}

const buffer = Buffer.alloc(FILE_BYTES)

/** The value of a `name value` line. */
function field(text: string | null, name: string): number | null {
  const line = text?.split('\n').find(candidate => candidate.startsWith(`${name} `))
  return line === undefined ? null : Number(line.slice(name.length + 1))
}
