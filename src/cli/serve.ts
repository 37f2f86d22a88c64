/** `forkyard serve`: listen until told to stop. */

import { type Command, Option } from 'commander'
import { readConfig } from '../config.ts'
import { runSetup } from './setup.ts'

type ServeFlags = { host?: string; port?: string; env?: string; listen?: string[]; setup: boolean }

/** Add the command. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the service')
    .option('--host <address>', 'address to listen on (HOST)')
    .option('--port <number>', 'port to listen on, 0 for a free one (PORT)')
    .option('--env <name>', 'environment served at the root as well as at its prefix (FORKYARD_ENV)')
    .addOption(
      new Option(
        '--listen <port=name...>',
        'several addresses, each with the environment at its root (FORKYARD_LISTEN)',
      ).conflicts(['port', 'env']),
    )
    .option('--setup', 'install what is missing first', false)
    .action(serve)
}

async function serve({ host, port, env, listen, setup }: ServeFlags): Promise<void> {
  // A flag for one address wins over a variable for several.
  const several = port === undefined && env === undefined ? listen?.join(' ') : ''
  const config = readConfig(undefined, { HOST: host, PORT: port, FORKYARD_ENV: env, FORKYARD_LISTEN: several })
  if (setup) await runSetup(config, { tests: false })
  // Loaded late: the other commands don't wait for it.
  const { startServer } = await import('../server.ts')
  const server = await startServer(config)
  const wide = ['0.0.0.0', '::'].includes(config.HOST) ? ', open to every network of this host' : ''
  for (const { url, environment } of server.addresses) {
    process.stdout.write(`Forkyard serves ${environment} at ${url}${wide}\n`)
  }
  process.stdout.write(`Every environment has a path of its own: ${server.prefixes.join(', ')}\n`)
  await stopSignal()
  process.stderr.write('closing; a second signal ends at once\n')
  await server.close()
}

/** The first SIGINT or SIGTERM. Later ones find no listener and have their usual effect. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    const stop = (signal: NodeJS.Signals) => {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      resolve(signal)
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
  })
}
