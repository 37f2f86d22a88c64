/** Finds a Python that the private environment can be made from. */

import { execa } from 'execa'
import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import { parseJson } from './json-text.ts'
import { pythonTool } from './paths.ts'

/** Oldest Python that the workers run on, as [major, minor]. */
const OLDEST: readonly [number, number] = [3, 10]

const NAMES_ON_PATH = ['python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3']
const PROBE_LIMIT_MS = 20_000

const Interpreter = z.object({
  executable: z.string().min(1).describe('The real path, not that of a shim which would cost a shell at every start.'),
  version: z.string(),
  release: z.tuple([z.int(), z.int()]),
  can_make_venv: z.boolean(),
  bundled_pip: z.string().nullable(),
})
/** An interpreter, described by itself. */
export type Interpreter = z.infer<typeof Interpreter>

/** How to choose. */
export type FindOptions = {
  /** It has to be able to make virtual environments; the default. */
  forVenv?: boolean
  probe?: Probe
}

/** Asks a command to describe itself; undefined when it is no Python 3. Replaced in tests. */
export type Probe = (command: string) => Promise<Interpreter | undefined>

/**
 * Choose the interpreter to build on.
 *
 * @param named What the host says to use; a name on the PATH or a path. Nothing else is tried then.
 * @throws {ServiceError} `missing_tool`, in one sentence that says what to install.
 */
export async function findPython(
  named?: string,
  { forVenv = true, probe = describe }: FindOptions = {},
): Promise<Interpreter> {
  const found: Interpreter[] = []
  for (const name of named === undefined ? NAMES_ON_PATH : [named]) {
    const interpreter = await probe(name)
    if (interpreter === undefined) continue
    if (isRecent(interpreter) && (interpreter.can_make_venv || !forVenv)) return interpreter
    found.push(interpreter)
  }
  throw new ServiceError('missing_tool', complaint(named, found))
}

const isRecent = ({ release: [major, minor] }: Interpreter): boolean =>
  major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])

function complaint(named: string | undefined, found: Interpreter[]): string {
  const needed = OLDEST.join('.')
  const incomplete = found.find(isRecent)
  if (incomplete !== undefined) {
    const release = incomplete.release.join('.')
    return `Python ${release} at ${incomplete.executable} can't make virtual environments: install its venv module (on Debian and Ubuntu, \`apt-get install python${release}-venv\`).`
  }
  const newest = found[0]
  if (newest !== undefined) {
    return `Forkyard needs Python ${needed} or newer and found ${newest.version} at ${newest.executable}: install a newer one, or name it in FORKYARD_PYTHON.`
  }
  if (named !== undefined)
    return `FORKYARD_PYTHON is ${named}, which is no Python 3: give the path of Python ${needed} or newer.`
  return `Forkyard needs Python ${needed} or newer and found none: install it (on Debian and Ubuntu, \`apt-get install python3 python3-venv\`).`
}

async function describe(command: string): Promise<Interpreter | undefined> {
  const { exitCode, stdout } = await execa(command, ['-I', pythonTool('describe_python.py')], {
    reject: false,
    stdin: 'ignore',
    timeout: PROBE_LIMIT_MS,
  })
  // A version manager's shim for a version that isn't active fails here, and the next name is tried.
  return exitCode === 0 ? Interpreter.safeParse(parseJson(stdout)).data : undefined
}
