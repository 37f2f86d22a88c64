/** Where things lie. */

import { join, resolve } from 'node:path'

/** Absolute path of the folder that holds package.json. */
export const repositoryRoot: string = resolve(import.meta.dirname, '../..')

/** Absolute path of a folder given relative to the repository. */
export const inRepository = (folder: string): string => resolve(repositoryRoot, folder)

/** The interpreter of a virtual environment. */
export const interpreterIn = (venv: string): string => join(inRepository(venv), 'bin', 'python')

/** A script of `python/tools`. */
export const pythonTool = (name: string): string => join(repositoryRoot, 'python', 'tools', name)

/** Folder of the tasks of ml_debug. */
export const tasksFolder: string = join(repositoryRoot, 'python', 'tasks')
