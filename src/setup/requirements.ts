/** Reads the pinned requirement files of `python/`. */

import { readFile } from 'node:fs/promises'
import { ServiceError } from '../errors.ts'
import { inRepository } from './paths.ts'

/**
 * The requirements of a file, one a line, without comments.
 *
 * @param path Relative to the repository.
 * @throws {ServiceError} `invalid_config` for a line that is an option: the lines are handed to pip as arguments.
 */
export async function readRequirements(path: string): Promise<string[]> {
  const lines = (await readFile(inRepository(path), 'utf8')).split('\n')
  const requirements = lines.map(line => line.replace(/(^|\s)#.*$/, '').trim()).filter(line => line !== '')
  const option = requirements.find(line => line.startsWith('-'))
  if (option !== undefined) {
    throw new ServiceError('invalid_config', `${path} may list packages only, and has the option "${option}".`)
  }
  return requirements
}

/** Whether a requirement is torch itself. */
export const isTorch = (requirement: string): boolean => /^torch(?![\w.-])/.test(requirement)

/** The packages' names, each once, for people. */
export const namesOf = (requirements: string[]): string =>
  [...new Set(requirements.map(line => /^[\w.-]+/.exec(line)?.[0] ?? line))].join(', ')
