/** A running service: configuration in, address out, everything closed in order at the end. */

import { type AppOptions, buildApps } from './app.ts'
import type { Config } from './config.ts'
import { createEnvironments } from './environment/registry.ts'
import { SessionTable } from './environment/sessions.ts'
import { ServiceError } from './errors.ts'
import { tasksFolder } from './setup/paths.ts'
import { startExecutor } from './start-executor.ts'

export type RunningServer = {
  /** `http://host:port` of the first address, with the port that was taken. */
  url: string
  /** Every address, with the environment at its root. */
  addresses: { url: string; environment: string }[]
  /** Path prefixes that every address serves. */
  prefixes: string[]
  /** Ends episodes, sockets, workers, in this order; resolves when the last process is gone. Idempotent. */
  close: () => Promise<void>
}

/**
 * Start the workers, then listen.
 *
 * @throws {ServiceError} When the interpreter or the isolation is missing, or the configuration can't be met.
 * @throws {Error} `EADDRINUSE` and its kin, when the address can't be had.
 */
export async function startServer(config: Config): Promise<RunningServer> {
  const executor = await startExecutor(config, line => process.stderr.write(`${line}\n`))
  const closers = [() => executor.close()]
  let closing = false
  const close = async () => {
    closing = true
    // In the reverse order of making. A closer that fails must not keep the next from closing.
    const failures: unknown[] = []
    for (const closer of closers.reverse()) await closer().catch((failure: unknown) => failures.push(failure))
    if (failures.length > 0) throw new AggregateError(failures, 'the service did not close cleanly')
  }
  try {
    const environments = createEnvironments({ executor, config, tasksFolder })
    const sessions = new SessionTable({
      environments,
      capacity: config.MAX_CONCURRENT_ENVS,
      idleMs: config.EPISODE_IDLE_S * 1000,
      lifetimeMs: config.EPISODE_LIFETIME_S * 1000,
    })
    const health: AppOptions['health'] = () => {
      const description = executor.describe()
      const status = closing ? 'unhealthy' : description.forking ? 'healthy' : 'degraded'
      return { status, details: { executor: description } }
    }
    const options: AppOptions = {
      sessions,
      environments,
      mode: config.FORKYARD_MODE,
      health,
      maxBodyMib: config.MAX_BODY_MIB,
      pingMs: config.SOCKET_PING_S * 1000,
      logLevel: config.LOG_LEVEL,
      webInterface: config.ENABLE_WEB_INTERFACE ? { readmePath: config.ENV_README_PATH } : null,
    }
    const wanted = config.FORKYARD_LISTEN ?? [{ port: config.PORT, environment: config.FORKYARD_ENV }]
    const [first, ...others] = await buildApps(options, wanted)
    if (first === undefined) throw new ServiceError('invalid_config', 'FORKYARD_LISTEN: names no address')
    closers.push(async () => {
      // Sessions first, so that running steps end and the requests that wait for them are answered.
      sessions.close()
      await Promise.all([first, ...others].map(({ app }) => app.close()))
    })
    const url = await first.app.listen({ host: config.HOST, port: first.port })
    const addresses = [{ url, environment: first.environment }]
    for (const { app, port, environment } of others) {
      addresses.push({ url: await app.listen({ host: config.HOST, port }), environment })
    }
    return { url, addresses, prefixes: environments.map(({ name }) => `/${name}`), close: once(close) }
  } catch (error) {
    await close()
    throw error
  }
}

function once(close: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => {
    running ??= close()
    return running
  }
}
