/** The service's run folder: sockets, FIFOs, canary and work folders of one server process. */

import { lstatSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { readdir, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { dir } from 'tmp-promise'
import { messageOf } from '../errors.ts'

const PREFIX = 'forkyard-'
const OWNER_FILE = 'owner'
/** How long one child process may take to remove a tree. */
const REMOVAL_LIMIT_MS = 120_000

export type RunFolder = {
  path: string
  /** A file that no worker may read; every worker tries to before it is ready. */
  canary: string
  /** Resolves when it is gone, or when what is left has been told to `onLog`. Never rejects. */
  remove(): Promise<void>
}

/**
 * Make the run folder of this process, mode 0700, after removing those of servers that are gone.
 *
 * A server that is killed can't clean up; its zygotes do, and if they were killed
 * too, the next server of the same user does. The file `owner` tells whose a
 * folder is, as one line: process id, clock ticks since boot when that process
 * started, and the inode of its pid namespace, with a space between. Process
 * ids of another namespace say nothing here, so such folders are left alone.
 *
 * @param onLog Told about folders that could not be removed.
 * @throws {Error} of the file system when the folder can't be made.
 */
export async function makeRunFolder(onLog: (line: string) => void = warn): Promise<RunFolder> {
  await sweepOrphans(onLog)
  const { path } = await dir({ prefix: PREFIX.slice(0, -1), unsafeCleanup: true, mode: 0o700 })
  const canary = join(path, 'canary')
  writeFileSync(canary, 'no worker reads this\n', { mode: 0o644 })
  writeFileSync(join(path, OWNER_FILE), `${process.pid} ${startTicks(process.pid)} ${pidNamespace()}\n`)
  return { path, canary, remove: () => removeOrTell(path, onLog) }
}

/** `remove` is for after the last process that writes there; it never rejects. */
export type WorkFolder = { path: string; remove(): Promise<void> }

/**
 * Make the folder that one episode writes to, where it has no file system of its own.
 *
 * @param onLog Told when it could not be removed.
 * @throws {Error} of the file system when the folder can't be made.
 */
export async function makeWorkFolder(runDir: string, onLog: (line: string) => void = warn): Promise<WorkFolder> {
  const { path } = await dir({ tmpdir: runDir, prefix: 'work', mode: 0o700 })
  return { path, remove: () => removeOrTell(path, onLog) }
}

async function removeOrTell(path: string, onLog: (line: string) => void): Promise<void> {
  const left = await removeTree(path)
  if (left !== null) onLog(left)
}

/**
 * Remove a folder whatever agent code made of it. Never rejects.
 *
 * The work is a child process's: `rm` goes down by descriptor, so no path is too
 * long, and a hundred thousand files cost this process nothing.
 *
 * @returns Why something is left, or null.
 */
async function removeTree(path: string): Promise<string | null> {
  if (await removeEmpty(path)) return null
  const first = await runTool('rm', ['-rf', '--one-file-system', '--', path])
  if (first === null) return null
  // Agent code may have taken its own folders' permissions away.
  const opened = await runTool('chmod', ['-R', 'u+rwX', '--', path])
  const second = await runTool('rm', ['-rf', '--one-file-system', '--', path])
  if (second === null) return null
  return [`${path} could not be removed: ${second}`, opened].filter(Boolean).join('; ')
}

/** Most episodes write nothing: no process is needed then. */
async function removeEmpty(path: string): Promise<boolean> {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    // Whatever it is, `rm` meets it too and its end is looked at.
    return codeOf(error) === 'ENOENT'
  }
}

/** @returns What went wrong, or null. */
async function runTool(name: string, args: string[]): Promise<string | null> {
  const result = await execa(name, args, { reject: false, stdio: 'ignore', timeout: REMOVAL_LIMIT_MS })
  return result.failed ? `${name}: ${result.originalMessage || `status ${result.exitCode}`}` : null
}

async function sweepOrphans(onLog: (line: string) => void): Promise<void> {
  const folder = tmpdir()
  for (const name of await readdir(folder)) {
    if (!name.startsWith(PREFIX)) continue
    const path = join(folder, name)
    try {
      if (!isOrphan(path)) continue
    } catch (error) {
      onLog(`${path} is left alone: ${messageOf(error)}`)
      continue
    }
    await removeOrTell(path, onLog)
  }
}

/** Whether a run folder is this user's and its server, which this process would see, is gone. */
function isOrphan(path: string): boolean {
  const folder = lstatSync(path, { throwIfNoEntry: false })
  if (folder === undefined || !folder.isDirectory() || folder.uid !== process.getuid?.()) return false
  const owner = join(path, OWNER_FILE)
  if (!exists(owner)) return false
  const [pid = '', ticks, namespace] = readFileSync(owner, 'utf8').trim().split(' ')
  if (!/^\d+$/.test(pid) || namespace !== pidNamespace()) return false
  return startTicks(Number(pid)) !== ticks
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/** When a process started, in clock ticks since boot: tells a process from a later one of the same pid. */
function startTicks(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ESRCH') return null
    throw error
  }
}

/** Inode of the pid namespace of this process. */
function pidNamespace(): string {
  return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function warn(line: string): void {
  process.emitWarning(line)
}
