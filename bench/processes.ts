/** Memory of process trees, from the kernel. */

import { readFileSync } from 'node:fs'

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
