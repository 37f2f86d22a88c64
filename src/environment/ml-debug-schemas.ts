/** The messages of the ml_debug environment. OpenAPI, `/schema`, tool lists and validation are made from these. */

import { z } from 'zod'
import { dict, episodeIdField, laxBool, laxInt, seedField, text } from './fields.ts'

/** What an agent can do. `submit_fix` ends the episode. */
export const ACTION_TYPES = [
  'submit_fix',
  'execute_snippet',
  'inspect_tensor',
  'run_training_probe',
  'get_variable_state',
  'inspect_diff',
] as const
export type ActionType = (typeof ACTION_TYPES)[number]

/** Optimizer steps of a probe. */
export const PROBE_STEPS = Object.freeze({ min: 1, max: 10, fallback: 5 })
/** Expressions evaluated by one `get_variable_state`. */
export const MAX_EXPRESSIONS = 10
/** Unicode characters of an expression. */
export const MAX_EXPRESSION_CHARS = 500
/** Bytes of UTF-8 of a field that holds code. */
export const MAX_CODE_BYTES = 256 * 1024

/** The kinds of field that the action and the arguments of tools are made of. */
export const ACTION_FIELDS = {
  fixed_code: text().describe('The whole repaired script.'),
  explanation: text().describe('What was wrong, in words. Kept out of the reward.'),
  attempt_number: laxInt({ min: 1, max: 10 }).describe('Accepted for compatibility; changes nothing.'),
  code: text().describe(
    'execute_snippet: Python code. run_training_probe: a training script; empty takes the broken one.',
  ),
  setup_code: text().describe(
    'Run before the expressions are evaluated. Not needed again for what an earlier call set up.',
  ),
  target_expression: text().describe(
    `A Python expression of a tensor, an array or a module, at most ${MAX_EXPRESSION_CHARS} characters.`,
  ),
  steps: laxInt({ min: PROBE_STEPS.min, max: PROBE_STEPS.max }).describe('Optimizer steps after which a probe stops.'),
  expressions: z.array(text()).describe(`Python expressions; the first ${MAX_EXPRESSIONS} are evaluated.`),
  proposed_code: text().describe('The script to compare with the broken one.'),
  fresh: laxBool().describe('Run this call in a namespace of its own; the variables of the episode stay as they are.'),
}

/** One step. Unknown keys are invalid. */
export const MlDebugAction = z.strictObject({
  action_type: z.enum(ACTION_TYPES).default('submit_fix').describe('What to do.'),
  episode_id: text().default('').describe('The episode that is meant; empty leaves that to the transport.'),
  fixed_code: ACTION_FIELDS.fixed_code.default(''),
  explanation: ACTION_FIELDS.explanation.default(''),
  attempt_number: ACTION_FIELDS.attempt_number.default(1),
  code: ACTION_FIELDS.code.default(''),
  setup_code: ACTION_FIELDS.setup_code.default(''),
  target_expression: ACTION_FIELDS.target_expression.default(''),
  steps: ACTION_FIELDS.steps.default(PROBE_STEPS.fallback),
  expressions: ACTION_FIELDS.expressions.default([]),
  proposed_code: ACTION_FIELDS.proposed_code.default(''),
  fresh: ACTION_FIELDS.fresh.default(false),
  metadata: dict().default({}).describe('Ignored.'),
})
export type MlDebugAction = z.output<typeof MlDebugAction>

/**
 * What a reset may say.
 *
 * @param taskIds The tasks there are; the first is the default.
 */
export function createResetSchema(taskIds: readonly string[]) {
  const known = taskIds.join(', ')
  return z.object({
    task_id: text()
      .nullish()
      .refine(id => !id || taskIds.includes(id), { error: ({ input }) => unknownTask(input, taskIds) })
      .describe(`One of ${known}; empty or missing takes ${taskIds[0]}.`),
    seed: seedField().describe('Chooses the data and the initial weights; null or missing is 0.'),
    episode_id: episodeIdField(),
  })
}
export type MlDebugReset = z.output<ReturnType<typeof createResetSchema>>

/** What is said about a task that there is not. */
export function unknownTask(id: unknown, taskIds: readonly string[]): string {
  return `unknown task ${JSON.stringify(String(id).slice(0, 100))}; expected one of ${taskIds.join(', ')}`
}

const number = z.number().nullable()
const flag = z.boolean().nullable()
const count = z.int().nonnegative()
const code = z.string().describe('Python.')

/** What one expression of `get_variable_state` came to. */
export const VariableState = z.looseObject({
  repr: z.string().optional().describe('At most 500 characters.'),
  type: z.string().optional(),
  value: z.union([z.string(), z.number(), z.boolean()]).nullish().describe('The value of a scalar, else a short text.'),
  shape: z.array(z.int()).nullish(),
  error: z.string().nullish().describe('Why it has no value; at most 200 characters.'),
})

/** What a reset or a step shows; every field is always there. Transports add `metadata`, hence loose. */
export const MlDebugObservation = z.looseObject({
  action_type: z.string().describe('The action that this answers, or `reset`.'),
  turn: count.describe('Actions taken so far.'),
  episode_done: z.boolean(),
  error: z.string().nullable().describe('Why the action brought nothing, or only a part.'),
  episode_id: z.string(),
  task_id: z.string(),
  task_description: z.string(),
  buggy_code: code,
  stdout: z.string(),
  stderr: z.string().describe('Ends with remarks of the service, one `note:` line each.'),
  exit_code: z.int(),
  timed_out: z.boolean(),
  shape: z.array(z.int()).nullable(),
  dtype: z.string().nullable(),
  requires_grad: flag,
  grad_is_none: flag,
  min_val: number,
  max_val: number,
  mean_val: number,
  is_nan: flag.describe('Whether there is a NaN in it.'),
  is_inf: flag.describe('Whether there is an infinity in it.'),
  losses: z.array(number).describe('Null where a loss is no finite number.'),
  grad_norms: z.record(z.string(), number).describe('Of the last step, by parameter.'),
  optimizer_param_count: count.nullable(),
  final_loss: number,
  loss_is_nan: z.boolean(),
  loss_is_inf: z.boolean(),
  results: z.record(z.string(), VariableState).describe('By expression.'),
  diff: z.string(),
  lines_changed: count,
  additions: count,
  deletions: count,
  success: z.boolean(),
  grader_details: dict().describe('What was measured on data the agent never saw, and what that earned.'),
  turns_used: count,
  error_log: z.string(),
  last_reward: z.number(),
  metrics: dict(),
})
export type MlDebugObservation = z.output<typeof MlDebugObservation>

/** What a state request shows. */
export const MlDebugState = z.looseObject({
  episode_id: z.string().nullable(),
  step_count: count,
  task_id: z.string(),
  seed: count,
  turn: count,
  max_turns: z.int().min(1),
  turns_remaining: count,
  submitted: z.boolean(),
  done: z.boolean(),
  best_reward: z.number().describe('0 before a submission was graded.'),
})
export type MlDebugState = z.output<typeof MlDebugState>
