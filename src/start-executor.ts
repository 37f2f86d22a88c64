/** From the configuration to a running executor. */

import { join } from 'node:path'
import { type Config, mib } from './config.ts'
import { ServiceError } from './errors.ts'
import { createExecutor } from './executor/create-executor.ts'
import type { Executor } from './executor/executor.ts'
import { workerPython } from './setup/interpreter.ts'
import { repositoryRoot } from './setup/paths.ts'

const MS_PER_S = 1000
/** What must fit below the ceiling of a step beside its grace: killing, one look at a variable, the shortest run. */
const LEAST_CEILING_S = 4

/**
 * Start the executor that the configuration describes.
 *
 * @param onLog Told what zygotes and failing workers write to stderr, line by line.
 * @throws {ServiceError} `invalid_config`, `missing_tool`, `isolation_unavailable`, `worker_start_failed`.
 */
export async function startExecutor(config: Config, onLog: (line: string) => void): Promise<Executor> {
  const disk_bytes = mib(config.EPISODE_DISK_MIB)
  const memory_bytes = mib(config.EPISODE_MEMORY_MIB)
  const processes = config.EPISODE_PROCESSES
  const inodes = config.EPISODE_INODES
  const least = config.STEP_GRACE_S + LEAST_CEILING_S
  if (config.STEP_CEILING_S < least) {
    const why = `the grace, ${LEAST_CEILING_S - 1} s to kill and look, and 1 s to run`
    throw new ServiceError('invalid_config', `STEP_CEILING_S: expected at least ${least}: ${why} must fit below it`)
  }
  const executor = await createExecutor({
    python: workerPython(config),
    python_path: join(repositoryRoot, 'python'),
    preload: [config.FORKYARD_TORCH === 'none' ? 'base' : 'torch'],
    level: config.SANDBOX_LEVEL,
    min_level: config.SANDBOX_MIN_LEVEL,
    limits: {
      memory_bytes,
      processes,
      disk_bytes,
      inodes,
      shm_bytes: mib(config.EPISODE_SHM_MIB),
      open_files: config.EPISODE_OPEN_FILES,
      threads: config.STEP_THREADS,
    },
    onLog,
    spares: config.WARM_SPARES,
    queueLimit: config.WORKER_QUEUE_LIMIT,
    queueTimeoutMs: config.WORKER_QUEUE_TIMEOUT_S * MS_PER_S,
    keepChars: config.REPL_MAX_OUTPUT_LENGTH,
    policy: {
      grace_ms: config.STEP_GRACE_S * MS_PER_S,
      ceiling_ms: config.STEP_CEILING_S * MS_PER_S,
      threads: config.STEP_THREADS,
      limits: { memory_bytes, processes, disk_bytes, inodes, output_bytes: mib(config.STEP_OUTPUT_LIMIT_MIB) },
    },
  })
  const { level } = executor.describe()
  if (level === 'none')
    onLog('WARNING: agent code runs without a sandbox: it can do what this user can (SANDBOX_MIN_LEVEL=none).')
  return executor
}
