/** Starts a server in a process of its own, to be killed by a test. */

import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { execa } from 'execa'

const PATIENCE_MS = 15_000
const LOOK_MS = 20

export type ServiceProcess = { pid: number; folder: string; untilFolderGone: () => Promise<void> }

/** Resolves when its episodes are running. */
export async function startServiceProcess(level: string): Promise<ServiceProcess> {
  const child = execa(process.execPath, [join(import.meta.dirname, 'service-main.ts')], {
    env: { SANDBOX_LEVEL: level, FORKYARD_TORCH: 'none', WARM_SPARES: '1' },
    stderr: 'inherit',
    reject: false,
    buffer: false,
  })
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    child.then(() => Promise.reject(new Error('the service ended'))),
  ])
  const folder = String(line).trim()
  if (child.pid === undefined) throw new Error('the service has no process')
  return { pid: child.pid, folder, untilFolderGone: () => until(() => !existsSync(folder), `${folder} is still there`) }
}

/** Resolves when no process of these ids runs; nobody but its parent is told of a process's end, so this looks. */
export async function untilGone(pids: number[]): Promise<void> {
  await until(() => pids.every(pid => !runs(pid)), `still running: ${pids.filter(runs).map(describe).join(', ')}`)
}

/** Resolves when `holds` does; for what no event tells. */
export async function until(holds: () => boolean, complaint: string): Promise<void> {
  for (const deadline = performance.now() + PATIENCE_MS; !holds(); await delay(LOOK_MS)) {
    if (performance.now() > deadline) throw new Error(complaint)
  }
}

function runs(pid: number): boolean {
  const stat = `/proc/${pid}/stat`
  if (!existsSync(stat)) return false
  try {
    // A zombie whose parent is the host's own init is gone for our purposes once that reaps it.
    return readFileSync(stat, 'utf8').split(') ')[1]?.[0] !== 'Z'
  } catch {
    return false
  }
}

function describe(pid: number): string {
  return existsSync(`/proc/${pid}/cmdline`)
    ? `${pid} ${readFileSync(`/proc/${pid}/stat`, 'utf8').slice(0, 60)}`
    : `${pid}`
}
