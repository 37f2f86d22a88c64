/** Memory of process trees, from the kernel. */

import { readdirSync, readFileSync } from 'node:fs'

const KIB = 1024

/** Private memory of a process in bytes: what would come back if it ended; 0 when it is gone. */
export function privateBytes(pid: number): number {
  const rollup = read(`/proc/${pid}/smaps_rollup`)
  return (field(rollup, 'Private_Dirty') + field(rollup, 'Private_Clean')) * KIB
}

/** Resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  return field(read(`/proc/${pid}/status`), 'VmRSS') * KIB
}

/** Process ids below a process. */
export function descendants(root: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? read(`/proc/${name}/stat`) : ''
    if (stat !== '') parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
  }
  const below = (pid: number | undefined): boolean => pid !== undefined && (pid === root || below(parents.get(pid)))
  return [...parents.keys()].filter(pid => pid !== root && below(parents.get(pid)))
}

function field(text: string, name: string): number {
  const line = text.split('\n').find(candidate => candidate.startsWith(`${name}:`))
  return line === undefined ? 0 : Number.parseInt(line.slice(name.length + 1), 10)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // A process may end between the listing and the reading; it then has no memory.
    return ''
  }
}
