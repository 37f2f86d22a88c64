/** pip, with its progress told. */

import { type BoundOptions, runBound, tryBound } from './bound-process.ts'
import type { Progress } from './progress.ts'
import type { Interpreter } from './python.ts'

/** The oldest pip that reports plans as JSON and progress as plain lines, and the one that replaces an older. */
const OLDEST_PIP: readonly [number, number] = [24, 1]
const PIP_REQUIREMENT = 'pip==25.3'

/**
 * Replace the pip that came with the interpreter where it is too old for the calls here.
 *
 * @throws {ServiceError} `missing_tool` when the package index can't be reached.
 */
export async function updateOldPip(python: string, interpreter: Interpreter, progress: Progress): Promise<void> {
  const [major = 0, minor = 0] = (interpreter.bundled_pip ?? '').split('.').map(Number)
  if (major > OLDEST_PIP[0] || (major === OLDEST_PIP[0] && minor >= OLDEST_PIP[1])) return
  progress.stage(`installing ${PIP_REQUIREMENT}`)
  await runBound(python, 'pip', ['install', PIP_REQUIREMENT], { onLine: tellDetails(progress) })
}

/**
 * `pip install` of ready-made wheels: nothing is compiled here.
 *
 * @throws {ServiceError} `missing_tool` with pip's own words.
 */
export async function pipInstall(python: string, args: string[], progress: Progress): Promise<void> {
  await runBound(python, 'pip', installArgs(args), { onLine: tellDetails(progress) })
}

/** The same; false instead of an error. */
export async function tryPipInstall(python: string, args: string[], progress: Progress): Promise<boolean> {
  return (await tryBound(python, 'pip', installArgs(args), { onLine: tellDetails(progress) })).ok
}

/** Any other pip command; false when it fails or takes longer than the limit. */
export async function tryPip(python: string, args: string[], options: BoundOptions): Promise<boolean> {
  return (await tryBound(python, 'pip', args, options)).ok
}

const installArgs = (args: string[]): string[] => ['install', '--only-binary=:all:', '--progress-bar=raw', ...args]

/** Turn pip's lines into details of the present stage. */
export function tellDetails(progress: Progress): (line: string) => void {
  let file = ''
  return line => {
    const download = /^\s*Downloading (?:.*\/)?([^/\s]+)/.exec(line)
    if (download?.[1] !== undefined) file = download[1]
    const bytes = /^Progress (\d+) of (\d+)$/.exec(line)
    if (bytes !== null && Number(bytes[2]) > 0) {
      progress.detail(`${Math.floor((100 * Number(bytes[1])) / Number(bytes[2]))} % of ${file}`)
    } else if (/^(Collecting|Processing|Installing collected packages)/.test(line)) {
      progress.detail(line)
    }
  }
}
