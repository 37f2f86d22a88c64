/** `npm test`: set up what is missing, check, then run every test. `--only python` (or node, checks) runs one part. */

import { parseArgs } from 'node:util'
import { exitCodeOf, sentenceOf } from '../../src/cli/failure.ts'
import { runSetup } from '../../src/cli/setup.ts'
import { readConfig } from '../../src/config.ts'
import { runChecks } from './check-steps.ts'
import { runNodeSuite } from './node-suite.ts'
import { runPythonSuite } from './python-suite.ts'
import { conclude, type SuiteResult, timed } from './suite.ts'

async function runAll(only: string | undefined): Promise<SuiteResult[]> {
  const python = await runSetup(readConfig(), { tests: true })
  const suites: Record<string, () => Promise<SuiteResult>> = {
    checks: () => runChecks('check'),
    node: () => runNodeSuite('node tests', ['test/**/*.test.ts']),
    python: () => runPythonSuite(python),
  }
  const results: SuiteResult[] = []
  for (const [name, runSuite] of Object.entries(suites)) {
    if (only === undefined || only === name) results.push(await timed(runSuite))
  }
  return results
}

try {
  const { values } = parseArgs({ options: { only: { type: 'string' } } })
  conclude(await runAll(values.only))
} catch (error) {
  console.error(sentenceOf(error))
  process.exitCode = exitCodeOf(error)
}
