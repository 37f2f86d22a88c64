/** Builds what an ml_debug reset or step shows: every field of the wire, each with its default where nothing set it. */

import type { JsonObject, StepResult } from './environment.ts'
import type { ActionType, MlDebugObservation } from './ml-debug-schemas.ts'
import { noSession } from './ml-debug-text.ts'
import { idleFacts } from './outcome-facts.ts'
import type { Task } from './task-folder.ts'

/** The least reward there is: for a turn that ends an episode without a grade, and for any after the end. */
export const LEAST_REWARD = 0.001

// Clients slice texts and lists and read objects, so these are never null.
const NOTHING = {
  stdout: '',
  stderr: '',
  exit_code: 0,
  timed_out: false,
  shape: null,
  dtype: null,
  requires_grad: null,
  grad_is_none: null,
  min_val: null,
  max_val: null,
  mean_val: null,
  is_nan: null,
  is_inf: null,
  losses: [],
  grad_norms: {},
  optimizer_param_count: null,
  final_loss: null,
  loss_is_nan: false,
  loss_is_inf: false,
  results: {},
  diff: '',
  lines_changed: 0,
  additions: 0,
  deletions: 0,
  success: false,
  grader_details: {},
  error_log: '',
  metrics: {},
} satisfies Partial<MlDebugObservation>

/** Where an episode stands. */
export type Place = {
  episodeId: string
  task: Pick<Task, 'id' | 'description' | 'brokenCode'>
  turn: number
  done: boolean
  lastReward: number
}

/** What an action answers with. */
export type Answer = { actionType: ActionType | 'reset'; error: string | null; fields: JsonObject }

/** The whole observation. */
export function observationOf(place: Place, { actionType, error, fields }: Answer): JsonObject {
  const { episodeId, task, turn, done, lastReward } = place
  return {
    action_type: actionType,
    turn,
    episode_done: done,
    error,
    episode_id: episodeId,
    task_id: task.id,
    task_description: task.description,
    buggy_code: task.brokenCode,
    ...structuredClone(NOTHING),
    turns_used: turn,
    last_reward: lastReward,
    ...fields,
  }
}

/** The answer to a step that names no live episode. @param taskId The default task, which clients expect there. */
export function strayResult(actionType: ActionType, episodeId: string, taskId: string): StepResult {
  const task = { id: taskId, description: '', brokenCode: '' }
  const place: Place = { episodeId, task, turn: 0, done: true, lastReward: LEAST_REWARD }
  const metadata = {
    ...idleFacts(''),
    terminated: false,
    truncated: true,
    reward_reason: 'there is no such episode; nothing was run',
    hint:
      episodeId === ''
        ? 'no episode is open, or several are: name the episode_id of a reset'
        : 'reset() answers with the episode_id to name; episodes that are not used for long are closed',
  }
  const observation = observationOf(place, { actionType, error: noSession(episodeId), fields: {} })
  return { observation: { ...observation, metadata }, reward: LEAST_REWARD, done: true, metadata }
}
