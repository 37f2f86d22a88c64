/** The repository's own files, as the rules of the house see them. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from '../../src/setup/paths.ts'

/** Folders that hold what others wrote, or what a run leaves. */
const NOT_OURS = new Set(['node_modules', '__pycache__', 'out'])

/**
 * Paths of all files below a folder, relative to the repository, hidden folders left out.
 *
 * @param folder Relative to the repository; '' is the repository itself.
 */
export function filesBelow(folder: string, extensions: readonly string[]): string[] {
  const found: string[] = []
  for (const entry of readdirSync(join(repositoryRoot, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (!NOT_OURS.has(entry.name) && !entry.name.startsWith('.')) found.push(...filesBelow(path, extensions))
    } else if (extensions.some(extension => entry.name.endsWith(extension))) {
      found.push(path)
    }
  }
  return found.sort()
}

/** The text of a file of the repository. */
export const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

/** Source files of every language, in the folders that hold some. */
export const sourceFiles = (): string[] =>
  ['src', 'bin', 'test', 'bench', 'python'].flatMap(folder => filesBelow(folder, ['.ts', '.js', '.py']))
