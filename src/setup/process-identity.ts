/** Tells whether a process is still the one that it was. */

import { readFile } from 'node:fs/promises'

/** Fields of `/proc/PID/stat` after the command's closing bracket: state is the first, start time the twentieth. */
const STATE_FIELD = 0
const START_FIELD = 19

/** When a process started, in ticks since boot; null where the host has no `/proc`, or no such process. */
export async function startOf(pid: number): Promise<string | null> {
  return (await statusOf(pid))?.start ?? null
}

/**
 * Whether the process that had this id is still running. A zombie is not.
 *
 * @param start What `startOf` said then; null compares the id alone, which another process may have since.
 */
export async function isRunning(pid: number, start: string | null): Promise<boolean> {
  if (start === null) return accepts(pid)
  const now = await statusOf(pid)
  return now !== undefined && now.start === start && now.state !== 'Z'
}

async function statusOf(pid: number): Promise<{ state: string; start: string } | undefined> {
  let text: string
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // No such process, or no /proc: the caller's question has the same answer.
    return undefined
  }
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state: fields[STATE_FIELD] ?? '', start: fields[START_FIELD] ?? '' }
}

function accepts(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
