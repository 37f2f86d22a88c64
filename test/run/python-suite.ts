/** Runs the Python tests; their counts come back on a descriptor of their own. */

import { execa } from 'execa'
import { z } from 'zod'
import { parseJson } from '../../src/setup/json-text.ts'
import { pythonTool, repositoryRoot } from '../../src/setup/paths.ts'
import type { SuiteResult } from './suite.ts'

const SUITE_LIMIT_MS = 600_000
const SUMMARY_FD = 3

const Counts = z.strictObject({ passed: z.int(), failed: z.int(), skipped: z.int() })

/** Run every `test_*.py` under `test/python` with this interpreter. A run that ends early counts as one failure. */
export async function runPythonSuite(python: string): Promise<SuiteResult> {
  const name = 'python tests'
  const child = await execa(
    python,
    [pythonTool('run_unittests.py'), 'test/python', '--summary-fd', String(SUMMARY_FD)],
    {
      cwd: repositoryRoot,
      env: { PYTHONPATH: 'python' },
      stdio: ['ignore', 'inherit', 'inherit', 'pipe'],
      timeout: SUITE_LIMIT_MS,
      reject: false,
    },
  )
  const counts = Counts.safeParse(parseJson(child.stdio[SUMMARY_FD]))
  if (counts.success) return { name, ...counts.data }
  console.log(`${name} ended without a result (${child.shortMessage ?? `exit code ${child.exitCode}`})`)
  return { name, passed: 0, failed: 1, skipped: 0 }
}
