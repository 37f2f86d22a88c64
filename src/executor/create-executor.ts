/** Builds the executor of a server: one run folder, one pool per preload set in use. */

import { ServiceError } from '../errors.ts'
import { makeRunFolder, type RunFolder } from '../launcher/workspace.ts'
import type { ZygoteOptions } from '../launcher/zygote.ts'
import type { RunPolicy } from './cell-run.ts'
import { PooledEpisodeWorker } from './episode-worker.ts'
import type { EpisodeWorker, Executor, ExecutorDescription, OpenRequest, PreloadSet } from './executor.ts'
import { Pool, type PoolOptions, retire } from './pool.ts'
import { PROTOCOL_VERSION } from './protocol.ts'
import type { WorkerProcess } from './worker-process.ts'

export type ExecutorOptions = Pick<
  ZygoteOptions,
  'python' | 'python_path' | 'level' | 'min_level' | 'limits' | 'onLog'
> &
  Pick<PoolOptions, 'spares' | 'queueLimit' | 'queueTimeoutMs' | 'keepChars'> & {
    /** Preload sets to keep a zygote for. */
    preload: readonly PreloadSet[]
    policy: RunPolicy
  }

/**
 * Start the zygotes and wait until each has imported its packages.
 *
 * @throws {ServiceError} `isolation_unavailable`, `worker_start_failed`.
 */
export async function createExecutor(options: ExecutorOptions): Promise<Executor> {
  const { preload, policy, python, python_path, level, min_level, limits, onLog, ...pool } = options
  const folder = await makeRunFolder(onLog)
  const common = { python, python_path, level, min_level, limits, onLog }
  const run = { protocol: PROTOCOL_VERSION, run_dir: folder.path, canary: folder.canary }
  const starts = preload.map(async set => {
    const zygote: ZygoteOptions = { ...common, ...run, preload: set }
    return [set, await Pool.start({ ...pool, zygote })] as const
  })
  const started = await Promise.allSettled(starts)
  const pools = new Map(started.flatMap(result => (result.status === 'fulfilled' ? [result.value] : [])))
  const failed = started.find(result => result.status === 'rejected')
  if (failed !== undefined) {
    await Promise.all([...pools.values()].map(each => each.close()))
    await folder.remove()
    throw failed.reason
  }
  return new PooledExecutor(pools, policy, folder)
}

class PooledExecutor implements Executor {
  readonly #pools: ReadonlyMap<PreloadSet, Pool>
  readonly #policy: RunPolicy
  readonly #folder: RunFolder
  readonly #busy = new Set<WorkerProcess>()
  #closing: Promise<void> | undefined

  constructor(pools: ReadonlyMap<PreloadSet, Pool>, policy: RunPolicy, folder: RunFolder) {
    this.#pools = pools
    this.#policy = policy
    this.#folder = folder
  }

  async open(request: OpenRequest): Promise<EpisodeWorker> {
    const pool = this.#pools.get(request.preload)
    if (pool === undefined) {
      throw new ServiceError(
        'worker_start_failed',
        `this service keeps no zygote with the preload set ${request.preload}`,
      )
    }
    const acquire = async () => {
      const taken = await pool.acquire()
      this.#busy.add(taken.worker)
      void taken.worker.ended.then(() => this.#busy.delete(taken.worker))
      return taken
    }
    return await PooledEpisodeWorker.open({ acquire, policy: this.#policy }, request)
  }

  describe(): ExecutorDescription {
    const pools = [...this.#pools.values()]
    const sum = (key: 'spare' | 'starting' | 'queued') => pools.reduce((total, pool) => total + pool.counts[key], 0)
    const ready = pools.map(pool => pool.ready)
    return {
      forking: pools.every(pool => pool.forking),
      level: ready[0]?.level ?? 'none',
      python: ready[0]?.python ?? '',
      torch: ready.map(({ torch }) => torch).find(version => version !== null) ?? null,
      preload: [...this.#pools.keys()],
      notes: [...new Set(ready.flatMap(({ notes }) => notes))],
      workers: { busy: this.#busy.size, spare: sum('spare'), starting: sum('starting'), queued: sum('queued') },
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  async #end(): Promise<void> {
    const busy = [...this.#busy]
    for (const worker of busy) retire(worker)
    await Promise.all([...this.#pools.values()].map(pool => pool.close()))
    await Promise.all(busy.map(worker => worker.ended))
    await this.#folder.remove()
  }
}
