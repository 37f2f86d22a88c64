/** What people use instead, measured in the same run. */

import { execa } from 'execa'
import { residentBytes } from './processes.ts'
import { type Summary, sample, summarize } from './statistics.ts'

/** A fresh process that imports torch: the floor of one call in a service without warm workers. */
export async function measureFreshTorch(python: string, count: number): Promise<Summary> {
  return summarize(await sample(count, 1, () => execa(python, ['-c', 'import torch'])))
}

/** Resident memory of a fresh process that imported torch, in bytes. */
export async function freshTorchBytes(python: string): Promise<number> {
  const child = execa(python, ['-c', 'import torch, sys; print(1, flush=True); sys.stdin.read()'], { stdin: 'pipe' })
  await new Promise(resolve => child.stdout.once('data', resolve))
  const bytes = child.pid === undefined ? Number.NaN : residentBytes(child.pid)
  child.stdin.end()
  await child
  return bytes
}

/** A step that prints `mib` MiB, against the same print into a pipe reader. */
export async function measurePipePrint(python: string, mib: number, count: number): Promise<Summary> {
  const script = `print("x" * ${mib * 2 ** 20})`
  return summarize(await sample(count, 1, () => execa('sh', ['-c', `"$0" -c '${script}' | cat > /dev/null`, python])))
}
