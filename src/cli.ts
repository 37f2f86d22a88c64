/** The command line: arguments in, exit code out. Each command is in its own file under cli/. */

import { Command } from 'commander'
import { addDemo } from './cli/demo.ts'
import { addDoctor } from './cli/doctor.ts'
import { exitCodeOf, sentenceOf } from './cli/failure.ts'
import { addServe } from './cli/serve.ts'
import { addSetup } from './cli/setup.ts'

const program = new Command('forkyard')
  .description('Runs reinforcement-learning and evaluation episodes in which a model writes real Python.')
  .showHelpAfterError('(`forkyard --help` lists the commands)')

for (const add of [addServe, addSetup, addDoctor, addDemo]) add(program)

// A reader that leaves, such as `head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

try {
  await program.parseAsync()
} catch (error) {
  process.stderr.write(`${sentenceOf(error)}\n`)
  process.exitCode = exitCodeOf(error)
}
