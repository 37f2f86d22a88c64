/** From a reset request to what an episode starts with. */

import { randomUUID } from 'node:crypto'
import { ServiceError } from '../errors.ts'
import { foldSeed } from './fields.ts'
import { type MlDebugReset, unknownTask } from './ml-debug-schemas.ts'
import type { Task } from './task-folder.ts'

/** What an episode knows of its reset. */
export type MlDebugStart = {
  episodeId: string
  task: Task
  /** In [0, 2^32); chooses the data and the initial weights. */
  seed: number
}

/** @throws {ServiceError} `invalid_request` for a task that there is not. */
export function readStart({ task_id, seed, episode_id }: MlDebugReset, tasks: readonly Task[]): MlDebugStart {
  const task = findTask(tasks, task_id || tasks[0]?.id)
  return { episodeId: episode_id || randomUUID(), task, seed: foldSeed(seed ?? 0) }
}

/** @throws {ServiceError} `invalid_request` naming the tasks there are. */
export function findTask(tasks: readonly Task[], id: string | undefined): Task {
  const task = tasks.find(candidate => candidate.id === id)
  if (task !== undefined) return task
  const ids = tasks.map(candidate => candidate.id)
  throw new ServiceError('invalid_request', unknownTask(id, ids))
}
