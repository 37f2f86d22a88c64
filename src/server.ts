/** A running service: configuration in, address out, everything closed in order at the end. */

import { type AppOptions, buildApp } from './app.ts'
import type { Config } from './config.ts'
import { createEnvironments } from './environment/registry.ts'
import { SessionTable } from './environment/sessions.ts'
import { startExecutor } from './start-executor.ts'

export type RunningServer = {
  /** `http://host:port`, with the port that was taken. */
  url: string
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
    const environments = createEnvironments({ executor, config })
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
    const app = await buildApp({
      sessions,
      environments,
      defaultEnvironment: config.FORKYARD_ENV,
      mode: config.FORKYARD_MODE,
      health,
      maxBodyMib: config.MAX_BODY_MIB,
      pingMs: config.SOCKET_PING_S * 1000,
      logLevel: config.LOG_LEVEL,
      webInterface: config.ENABLE_WEB_INTERFACE ? { readmePath: config.ENV_README_PATH } : null,
      tasks: new Map(),
    })
    closers.push(async () => {
      // Sessions first, so that running steps end and the requests that wait for them are answered.
      sessions.close()
      await app.close()
    })
    const url = await app.listen({ host: config.HOST, port: config.PORT })
    return { url, close: once(close) }
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
