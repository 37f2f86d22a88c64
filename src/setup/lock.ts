/**
 * A lock between processes of one host: a file that names its holder.
 *
 * The file appears whole (it is linked into place), so a reader never sees half
 * of it. A holder that died leaves it behind; whoever finds such a file may
 * remove it, and a marker linked next to it lets one process only do so: two that
 * both saw the dead holder could otherwise remove each other's new lock.
 */

import { randomUUID } from 'node:crypto'
import { link, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { parseJson } from './json-text.ts'
import { isRunning, startOf } from './process-identity.ts'

const POLL_MS = 150
/** A marker this old was left by a process that died within the few system calls of its use. */
const MARKER_LIFETIME_MS = 10_000

const Holder = z.object({ token: z.string(), pid: z.int(), start: z.string().nullable() })
type Holder = z.infer<typeof Holder>

/** Stands for the writer of a lock file that is no lock file: nobody, so that it counts as left over. */
const NOBODY: Holder = { token: 'unreadable', pid: 0, start: 'never' }

/**
 * Run `body` while no other process holds the lock.
 *
 * @param path The lock file; its folder must exist.
 * @param onWait Called once when another process has it, with that process's id.
 */
export async function withLock<T>(path: string, onWait: (pid: number) => void, body: () => Promise<T>): Promise<T> {
  const mine: Holder = { token: randomUUID(), pid: process.pid, start: await startOf(process.pid) }
  await take(path, mine, onWait)
  try {
    return await body()
  } finally {
    await rm(path, { force: true })
  }
}

async function take(path: string, mine: Holder, onWait: (pid: number) => void): Promise<void> {
  const draft = `${path}.${mine.token}`
  await writeFile(draft, JSON.stringify(mine))
  try {
    for (let told = false; !(await linkIfFree(draft, path)); ) {
      const holder = await readHolder(path)
      if (holder === undefined) continue
      if (!(await isRunning(holder.pid, holder.start))) {
        await removeLeftover(path, holder)
        continue
      }
      if (!told) onWait(holder.pid)
      told = true
      await sleep(POLL_MS)
    }
  } finally {
    await rm(draft, { force: true })
  }
}

async function removeLeftover(path: string, dead: Holder): Promise<void> {
  const marker = `${path}.${dead.token}.leftover`
  const marked = await unlessMissing(linkIfFree(path, marker))
  if (marked === undefined) return
  if (!marked) {
    await removeOldMarker(marker)
    await sleep(POLL_MS)
    return
  }
  // The lock may have changed hands between reading it and marking it.
  if ((await readHolder(marker))?.token === dead.token) await rm(path, { force: true })
  await rm(marker, { force: true })
}

async function removeOldMarker(marker: string): Promise<void> {
  const made = await unlessMissing(stat(marker))
  // Linking sets ctime. The wall clock is the only one that files and processes share.
  if (made !== undefined && Date.now() - made.ctimeMs > MARKER_LIFETIME_MS) await rm(marker, { force: true })
}

async function readHolder(path: string): Promise<Holder | undefined> {
  const text = await unlessMissing(readFile(path, 'utf8'))
  if (text === undefined) return undefined
  const parsed = z.preprocess(parseJson, Holder).safeParse(text)
  return parsed.success ? parsed.data : NOBODY
}

/** False when `to` exists. */
async function linkIfFree(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false
    throw error
  }
}

async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
