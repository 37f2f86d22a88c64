/** Runs test files with Node's own runner and counts from its events. */

import { availableParallelism } from 'node:os'
import { finished } from 'node:stream/promises'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { repositoryRoot } from '../../src/setup/paths.ts'
import type { SuiteResult } from './suite.ts'

/** A file that takes longer hangs. */
const FILE_LIMIT_MS = 300_000

/**
 * Run the files that match, showing each test as it ends.
 *
 * @param patterns Globs, relative to the repository.
 */
export async function runNodeSuite(name: string, patterns: string[]): Promise<SuiteResult> {
  const result: SuiteResult = { name, passed: 0, failed: 0, skipped: 0 }
  const events = run({
    cwd: repositoryRoot,
    globPatterns: patterns,
    // One core stays free for the workers that the tests start.
    concurrency: Math.max(1, availableParallelism() - 1),
    timeout: FILE_LIMIT_MS,
  })
  events.on('test:summary', ({ file, counts, success }) => {
    // There is one summary for each file and one, without a file, for all of them.
    if (file !== undefined) return
    result.passed = counts.passed
    result.skipped = counts.skipped + counts.todo
    // A hook or a file can fail without any test of its own to count.
    result.failed = Math.max(counts.tests - result.passed - result.skipped, success ? 0 : 1)
  })
  const shown = events.compose(spec)
  shown.pipe(process.stdout, { end: false })
  await finished(shown)
  return result
}
