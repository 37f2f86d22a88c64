/** What the kernel counted for one process tree, read by the service itself. */

import { readFileSync } from 'node:fs'
import type { Accounting, ExitReport } from '../launcher/zygote-frames.ts'

export type Counters = {
  cpu_ms: number | null
  peak_memory_bytes: number | null
  oom_kills: number
  pids_hits: number
}

const NS_PER_MS = 1e6
const US_PER_MS = 1e3

/** Read the counters; null or zero where the host has none, or the tree is gone. */
export function readCounters(files: Accounting): Counters {
  const peak = readText(files.memory_peak)
  return {
    cpu_ms: cpuMs(readText(files.cpu)),
    peak_memory_bytes: peak === null ? null : Number(peak),
    oom_kills: field(readText(files.oom), 'oom_kill') ?? 0,
    pids_hits: field(readText(files.pids_events), 'max') ?? 0,
  }
}

/** The kernel's last word on a tree that is gone; null when nobody saw it end. */
export function countersOf(report: ExitReport | null): Counters {
  if (report === null) return { cpu_ms: null, peak_memory_bytes: null, oom_kills: 0, pids_hits: 0 }
  const { cpu_ns, peak_memory_bytes, oom_kills, pids_hits } = report
  return { cpu_ms: cpu_ns === null ? null : cpu_ns / NS_PER_MS, peak_memory_bytes, oom_kills, pids_hits }
}

function cpuMs(text: string | null): number | null {
  if (text === null) return null
  const used_us = field(text, 'usage_usec')
  return used_us === null ? Number(text) / NS_PER_MS : used_us / US_PER_MS
}

/** The value of a `name value` line. */
function field(text: string | null, name: string): number | null {
  const line = text?.split('\n').find(candidate => candidate.startsWith(`${name} `))
  return line === undefined ? null : Number(line.slice(name.length + 1))
}

function readText(path: string | null): string | null {
  if (path === null) return null
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    // The group is removed with its tree, possibly between two reads.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENODEV')) return null
    throw error
  }
}
