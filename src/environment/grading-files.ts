/** The Python files of all tasks, read once: what evaluations and scripts are sent with. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, ServiceError } from '../errors.ts'
import type { Files } from './grading-worker.ts'

const WORKBENCH = 'workbench.py'
const GRADING = 'grading'
/** The one file of a task that is the agent's, and no part of the evaluation. */
const BROKEN = 'broken.py'

/** What is sent to workers, base64 by path. */
export type GradingFiles = {
  /** For every script: the module it reads and writes with. */
  workbench: Files
  /** For the evaluation of a task, by task id. */
  evaluations: ReadonlyMap<string, Files>
}

/**
 * Read what grading needs of a folder of tasks.
 *
 * @throws {ServiceError} `invalid_config` if it can't be read.
 */
export function readGradingFiles(tasksFolder: string): GradingFiles {
  try {
    const grading = readPython(join(tasksFolder, GRADING), `${GRADING}/`)
    const tasks = readdirSync(tasksFolder, { withFileTypes: true }).filter(
      entry => entry.isDirectory() && entry.name !== GRADING,
    )
    return {
      workbench: { [WORKBENCH]: encode(join(tasksFolder, WORKBENCH)) },
      evaluations: new Map(
        tasks.map(({ name }) => [name, { ...grading, ...readPython(join(tasksFolder, name), '', [BROKEN]) }]),
      ),
    }
  } catch (cause) {
    throw new ServiceError('invalid_config', `${tasksFolder}: can not be read: ${messageOf(cause)}`, { cause })
  }
}

function readPython(folder: string, prefix: string, except: readonly string[] = []): Files {
  const names = readdirSync(folder).filter(name => name.endsWith('.py') && !except.includes(name))
  return Object.fromEntries(names.map(name => [prefix + name, encode(join(folder, name))]))
}

const encode = (path: string): string => readFileSync(path).toString('base64')
