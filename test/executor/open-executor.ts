/** A real executor for one test file. */

import { readConfig } from '../../src/config.ts'
import type { CellOutcome, EpisodeWorker, Executor, OpenRequest } from '../../src/executor/executor.ts'
import { startExecutor } from '../../src/start-executor.ts'

/** Levels every behaviour is tested at; a host that lacks one fails to start and says why. */
export const LEVELS = ['namespaces', 'landlock'] as const

export type TestExecutor = {
  executor: Executor
  /** What the Python side logged. */
  log: string[]
  open: (request?: Partial<OpenRequest>) => Promise<EpisodeWorker>
}

/** @param settings Environment variables over small defaults without torch. */
export async function openExecutor(settings: Record<string, string> = {}): Promise<TestExecutor> {
  const log: string[] = []
  const config = readConfig({ FORKYARD_TORCH: 'none', WARM_SPARES: '1', ...settings })
  const executor = await startExecutor(config, line => log.push(line))
  const preload = executor.describe().preload[0] ?? 'base'
  const open = (request: Partial<OpenRequest> = {}) =>
    executor.open({
      preload,
      variables: {},
      files: {},
      endings: true,
      call_helpers: [],
      seed: null,
      onCall: () => Promise.reject(new Error('no calls in this test')),
      ...request,
    })
  return { executor, log, open }
}

/** Run code with a limit of 10 s. */
export function run(worker: EpisodeWorker, code: string, limit_ms = 10_000): Promise<CellOutcome> {
  return worker.run({ code, limit_ms })
}
