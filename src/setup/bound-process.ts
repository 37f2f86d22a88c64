/** Runs Python modules that end when this process does, and reads what they say. */

import { execa } from 'execa'
import { ServiceError } from '../errors.ts'
import { pythonTool } from './paths.ts'

/** Lines of output kept for a complaint. */
const KEPT_LINES = 40

/** How a module ended. */
export type BoundResult = {
  ok: boolean
  /** Its last lines, stdout and stderr together. */
  lastLines: string[]
}

/** What a module may be given. */
export type BoundOptions = {
  /** Sees every line, stdout and stderr together. */
  onLine?: (line: string) => void
  /** Ends it after this long, in milliseconds. */
  limitMs?: number
}

/**
 * Run `python -m module`. The caller's environment, and so the user's own pip settings, stay in force.
 *
 * @returns How it ended; never rejects for what the module does.
 */
export async function tryBound(
  python: string,
  module: string,
  args: string[],
  { onLine, limitMs }: BoundOptions = {},
): Promise<BoundResult> {
  const child = execa(python, ['-I', '-u', pythonTool('run_bound.py'), String(process.pid), module, ...args], {
    reject: false,
    buffer: false,
    all: true,
    stdin: 'ignore',
    // Installing for the user instead is refused inside a virtual environment.
    env: { PIP_USER: '0', PIP_NO_INPUT: '1', PIP_DISABLE_PIP_VERSION_CHECK: '1' },
    ...(limitMs === undefined ? {} : { timeout: limitMs }),
  })
  const lastLines: string[] = []
  for await (const line of child.iterable({ from: 'all' })) {
    onLine?.(line)
    lastLines.push(line)
    if (lastLines.length > KEPT_LINES) lastLines.shift()
  }
  const { exitCode } = await child
  return { ok: exitCode === 0, lastLines }
}

/**
 * The same, for a module that has to succeed.
 *
 * @throws {ServiceError} `missing_tool` with what the module said last.
 */
export async function runBound(
  python: string,
  module: string,
  args: string[],
  options: BoundOptions = {},
): Promise<void> {
  const { ok, lastLines } = await tryBound(python, module, args, options)
  if (ok) return
  const errors = lastLines.filter(line => /\berror\b/i.test(line))
  const said = (errors.length > 0 ? errors : lastLines).slice(-3).join(' ').trim()
  throw new ServiceError('missing_tool', `python -m ${module} failed: ${said || 'it said nothing'}`)
}
