/** Looks into the process table of the host: what a service has started, and what is left of it. */

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** One process below this one. */
export type ProcessEntry = {
  pid: number
  parent: number
  /** Short name, as the kernel keeps it. */
  name: string
  /** One letter of the kernel; `Z` is a zombie. */
  state: string
  /** Private and shared memory held, in bytes. */
  residentBytes: number
}

const PAGE_BYTES = 4096

/**
 * Every process started below another, zombies included.
 *
 * @param root Whose processes to look for.
 * @param except Root of a branch to leave out, such as a test's own client.
 */
export function descendants(root = process.pid, except?: number): ProcessEntry[] {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  const entries = pids.map(readEntry).filter(entry => entry !== null)
  const below = new Set([root])
  // A child may have a smaller pid than its parent once pids wrap, so look until nothing is added.
  for (let before = -1; before !== below.size; ) {
    before = below.size
    for (const { pid, parent } of entries) if (below.has(parent) && pid !== except) below.add(pid)
  }
  return entries.filter(({ pid }) => pid !== root && below.has(pid))
}

/** Null when the process ended meanwhile. */
function readEntry(pid: string): ProcessEntry | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return null
    throw error
  }
  // The name in brackets may hold anything, so fields are counted from its last bracket.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state = '?', parent = '0'] = fields
  const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
  return { pid: Number(pid), parent: Number(parent), name, state, residentBytes: Number(fields[21]) * PAGE_BYTES }
}

/** Memory of all of them together, in bytes; shared pages count once per process. */
export function residentBytes(entries: ProcessEntry[]): number {
  return entries.reduce((sum, entry) => sum + entry.residentBytes, 0)
}

/**
 * Look again until the processes are as wanted.
 *
 * @returns What was there at last: the wanted state, or what it was when patience ended.
 */
export async function settled(
  wanted: (entries: ProcessEntry[]) => boolean,
  except?: number,
  patienceMs = 10_000,
): Promise<ProcessEntry[]> {
  const giveUp = performance.now() + patienceMs
  for (;;) {
    const entries = descendants(process.pid, except)
    if (wanted(entries) || performance.now() > giveUp) return entries
    await pause(50)
  }
}
