/** `forkyard setup`: install what the workers need. */

import type { Command } from 'commander'
import { type Config, readConfig } from '../config.ts'
import { createProgress } from '../setup/progress.ts'
import { ensureTestVenvs, ensureWorkerPython } from '../setup/setup.ts'

/** Add the command. */
export function addSetup(program: Command): void {
  program
    .command('setup')
    .description('install the private Python environment; safe to repeat and to interrupt')
    .option('--tests', 'install what the tests and checks need as well', false)
    .action(async ({ tests }: { tests: boolean }) => {
      process.stdout.write(`${await runSetup(readConfig(), { tests })}\n`)
    })
}

/**
 * Install what is missing, telling it on stderr.
 *
 * @returns Absolute path of the workers' interpreter.
 * @throws {ServiceError} `missing_tool` or `invalid_config`.
 */
export async function runSetup(config: Config, { tests }: { tests: boolean }): Promise<string> {
  const progress = createProgress(process.stderr)
  try {
    const python = await ensureWorkerPython(config, progress)
    if (tests) await ensureTestVenvs(config, progress)
    return python
  } finally {
    progress.close()
  }
}
