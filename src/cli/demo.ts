/** `forkyard demo`: one short episode, shown step by step. */

import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { runSetup } from './setup.ts'

/** Add the command. */
export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('play one episode against a service of its own; needs no model and no key')
    .action(async () => {
      const config = readConfig()
      await runSetup(config, { tests: false })
      const { runDemo } = await import('../demo.ts')
      await runDemo(config)
    })
}
