/** The service's run folder: sockets, FIFOs, canary and work folders of one server process. */

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { dir } from 'tmp-promise'

const PREFIX = 'forkyard-'
const OWNER_FILE = 'owner'

export type RunFolder = {
  path: string
  /** A file that no worker may read; every worker tries to before it is ready. */
  canary: string
  remove(): void
}

/**
 * Make the run folder of this process, mode 0700, after removing those of servers that are gone.
 *
 * A server that is killed can't clean up; its zygotes do, and if they were killed
 * too, the next server does.
 */
export async function makeRunFolder(): Promise<RunFolder> {
  sweepOrphans()
  const { path } = await dir({ prefix: PREFIX.slice(0, -1), unsafeCleanup: true, mode: 0o700 })
  const canary = join(path, 'canary')
  writeFileSync(canary, 'no worker reads this\n', { mode: 0o644 })
  writeFileSync(join(path, OWNER_FILE), `${process.pid} ${startTicks(process.pid)}\n`)
  return { path, canary, remove: () => rmSync(path, { recursive: true, force: true }) }
}

export type WorkFolder = { path: string; remove(): Promise<void> }

/** Make the folder that one episode writes to, where it has no file system of its own. */
export async function makeWorkFolder(runDir: string): Promise<WorkFolder> {
  const { path } = await dir({ tmpdir: runDir, prefix: 'work', mode: 0o700 })
  return { path, remove: () => removeTree(path) }
}

async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 2 })
  } catch {
    // Agent code may have taken its own folders' permissions away.
    await execa('chmod', ['-R', 'u+rwX', path], { reject: false })
    await rm(path, { recursive: true, force: true })
  }
}

function sweepOrphans(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue
    const path = join(tmpdir(), name)
    const owner = join(path, OWNER_FILE)
    if (!existsSync(owner)) continue
    const [pid, ticks] = readFileSync(owner, 'utf8').trim().split(' ')
    if (startTicks(Number(pid)) !== ticks) rmSync(path, { recursive: true, force: true })
  }
}

/** When a process started, in clock ticks since boot: tells a process from a later one of the same pid. */
function startTicks(pid: number): string | null {
  const stat = `/proc/${pid}/stat`
  if (!existsSync(stat)) return null
  const text = readFileSync(stat, 'utf8')
  return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null
}
