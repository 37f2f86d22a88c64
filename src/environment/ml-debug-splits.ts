/** The tasks as splits for training and evaluation: the same six faults on seeds that no two splits share. */

import type { JsonObject, TaskCatalogue, TaskSplit } from './environment.ts'
import type { Task } from './task-folder.ts'

/** Seeds of a split, the last one left out. Even numbers of seeds: the data of a task differ by parity. */
const SPLITS: readonly (TaskSplit & { from: number; to: number })[] = [
  { name: 'train', type: 'train', from: 0, to: 800 },
  { name: 'validation', type: 'validation', from: 800, to: 900 },
  { name: 'test', type: 'test', from: 900, to: 1000 },
]

/** The catalogue of these tasks, seed by seed. `task_id` and `seed` are what a reset takes. */
export function createTaskCatalogue(tasks: readonly Task[]): TaskCatalogue {
  return {
    splits: SPLITS.map(({ name, type }) => ({ name, type })),
    tasks: wanted => {
      const split = SPLITS.find(({ name }) => name === wanted)
      if (split === undefined) return undefined
      const seeds = Array.from({ length: split.to - split.from }, (_, index) => split.from + index)
      return seeds.flatMap(seed => tasks.map(task => taskWithSeed(task, seed)))
    },
  }
}

function taskWithSeed({ id, name, difficulty }: Task, seed: number): JsonObject {
  return { id: `${id}-seed${seed}`, task_id: id, name, difficulty, seed }
}
