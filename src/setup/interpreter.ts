/** Which Python runs the workers. */

import { existsSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { ServiceError } from '../errors.ts'
import { inRepository, interpreterIn } from './paths.ts'

/** The settings of `src/config.ts` that choose an interpreter. */
export type InterpreterSettings = { FORKYARD_PYTHON?: string | undefined; FORKYARD_VENV: string }

/**
 * Absolute path of the workers' interpreter: the host's own where it is named, else the private environment's.
 *
 * @throws {ServiceError} `missing_tool` when it is not there.
 */
export function workerPython(settings: InterpreterSettings): string {
  const named = settings.FORKYARD_PYTHON
  if (named !== undefined) {
    const path = isAbsolute(named) ? named : inRepository(named)
    if (!existsSync(path)) {
      throw new ServiceError(
        'missing_tool',
        `FORKYARD_PYTHON names ${path}, which does not exist: give the path of a Python 3.10 or newer.`,
      )
    }
    return path
  }
  const path = interpreterIn(settings.FORKYARD_VENV)
  if (!existsSync(path)) {
    throw new ServiceError(
      'missing_tool',
      `There is no Python environment at ${settings.FORKYARD_VENV} yet: run \`npm run setup\`.`,
    )
  }
  return path
}
