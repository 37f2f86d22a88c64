/** The service under test, in a process of its own as users run it. */

import { join } from 'node:path'
import { execa } from 'execa'
import { repositoryRoot } from '../src/setup/paths.ts'

export type Service = { url: string; pid: number; close: () => Promise<void> }

/** Serve on a free port; resolves when it answers. @param settings Environment variables over the caller's own. */
export async function startService(settings: Record<string, string>): Promise<Service> {
  const child = execa(process.execPath, [join(repositoryRoot, 'src', 'cli.ts'), 'serve'], {
    env: { PORT: '0', MAX_CONCURRENT_ENVS: '4096', REPL_MAX_ITERATIONS: '1000000', ...settings },
    buffer: false,
    reject: false,
    stderr: 'inherit',
  })
  const { pid } = child
  if (pid === undefined) throw new Error('the service has no process')
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const found = /https?:\/\/\S+/.exec(chunk.toString())
      if (found !== null) resolve(found[0])
    })
    child.then(() => reject(new Error('the service ended while it started')), reject)
  })
  const close = async () => {
    child.kill('SIGTERM')
    await child
  }
  return { url, pid, close }
}
