/** What `diff -u` prints about two texts, from the `diff` of the host. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { dir } from 'tmp-promise'
import { ServiceError } from '../errors.ts'

/** Texts of a few hundred KiB take milliseconds; this ends a `diff` that hangs. */
const TIME_LIMIT_MS = 10_000
/** `diff` may print all of both texts. */
const OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/

export type UnifiedDiff = {
  /** Empty for equal texts. */
  text: string
  additions: number
  deletions: number
}

/** A text and what it is called in the diff. */
export type NamedText = { name: string; text: string }

/**
 * Compare two texts.
 *
 * @throws {ServiceError} `missing_tool` where the host has no `diff`; `internal` when it fails.
 */
export async function unifiedDiff(before: NamedText, after: NamedText): Promise<UnifiedDiff> {
  const folder = await dir({ prefix: 'forkyard-diff', unsafeCleanup: true, mode: 0o700 })
  try {
    const paths = [join(folder.path, 'before'), join(folder.path, 'after')]
    await Promise.all([before, after].map(({ text }, index) => writeFile(paths[index] ?? '', text)))
    // --text: a text with a NUL character is still a text to whoever wrote it.
    const labels = ['--label', before.name, '--label', after.name]
    const text = await runDiff(['--unified', '--text', ...labels, '--', ...paths])
    return { text, ...countChanges(text) }
  } finally {
    await folder.cleanup()
  }
}

async function runDiff(args: string[]): Promise<string> {
  const result = await execa('diff', args, {
    reject: false,
    stdin: 'ignore',
    stripFinalNewline: false,
    timeout: TIME_LIMIT_MS,
    maxBuffer: OUTPUT_LIMIT_BYTES,
    // Its remarks, such as that about a missing last newline, are words of the locale.
    env: { LC_ALL: 'C' },
  })
  if (result.code === 'ENOENT') {
    throw new ServiceError('missing_tool', 'there is no `diff` on this host: install diffutils')
  }
  // 1 says that the texts differ.
  if (result.exitCode === 0 || (result.exitCode === 1 && !result.isMaxBuffer)) return result.stdout
  throw new ServiceError('internal', `diff failed: ${result.shortMessage ?? `exit code ${result.exitCode}`}`)
}

/** Lines added and deleted in the hunks of a diff; by the counts in their headers, because any line may start with `++`. */
export function countChanges(diff: string): { additions: number; deletions: number } {
  const counts = { additions: 0, deletions: 0 }
  let [oldLeft, newLeft] = [0, 0]
  for (const line of diff.split('\n')) {
    if (oldLeft === 0 && newLeft === 0) {
      const header = HUNK.exec(line)
      if (header === null) continue
      oldLeft = Number(header[1] ?? 1)
      newLeft = Number(header[2] ?? 1)
    } else if (line.startsWith('-')) {
      oldLeft--
      counts.deletions++
    } else if (line.startsWith('+')) {
      newLeft--
      counts.additions++
    } else if (!line.startsWith('\\')) {
      oldLeft--
      newLeft--
    }
  }
  return counts
}
