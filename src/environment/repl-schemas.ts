/** The messages of the repl environment. OpenAPI, `/schema` and validation are made from these. */

import { z } from 'zod'
import { dict, episodeIdField, laxBool, laxInt, seedField, text } from './fields.ts'

/** One step. Unknown keys are invalid. */
export const ReplAction = z.strictObject({
  code: text().default('').describe('Python code to run in the episode.'),
  is_final: laxBool().default(false).describe('Submit `final_answer` and end the episode; `code` is not run.'),
  final_answer: text().nullable().default(null).describe('The answer, when `is_final` is true; null counts as empty.'),
  metadata: dict().default({}).describe('Ignored.'),
})
export type ReplAction = z.output<typeof ReplAction>

/** Whether a JSON number still has the digits that it was written with. */
function isExact(value: number): boolean {
  return !Number.isInteger(value) || Number.isSafeInteger(value)
}

/** What a reset may say. */
export const ReplReset = z.object({
  seed: seedField(),
  episode_id: episodeIdField(),
  context: text().nullish().describe('Bound to the variable `context`; empty or missing takes the configured default.'),
  task_prompt: text().nullish().describe('What to do; empty or missing takes the configured default.'),
  expected_answer: z
    .union([z.string(), z.number().refine(isExact, 'beyond 2^53 - 1: give it as a string'), z.boolean()], {
      error: 'Input should be a string, a boolean, or a number (integers beyond 2^53 - 1 as a string)',
    })
    .nullish()
    .describe('Ground truth of this episode: final answers are compared with it. Never sent back.'),
  hf_token: text().nullish().describe('Key for sub-model calls. Not stored, not sent back, not logged.'),
  llm_model: text().nullish().describe('Model for sub-model calls.'),
  rlm_max_depth: laxInt({ min: 0 }).nullish().describe('Deepest level of rlm_query.'),
  rlm_max_iterations: laxInt({ min: 0 }).nullish().describe('Steps of an rlm_query child.'),
})
export type ReplReset = z.output<typeof ReplReset>

const CodeResult = z.looseObject({
  stdout: z.string().describe('What was printed, and the value of a last expression.'),
  stderr: z.string().describe('The exception first, then what was written to stderr, then remarks of the service.'),
  locals_snapshot: z
    .record(z.string(), z.string())
    .describe('Names that the step bound or rebound, with the repr of each.'),
  execution_time: z.number().nonnegative().describe('Wall seconds.'),
  success: z.boolean(),
  exception: z.string().nullable().describe('`<Type>: <message>`, then the frames of the agent; null on success.'),
})

/** What a reset or a step shows. Transports add `reward` and `done`, hence loose. */
export const ReplObservation = z.looseObject({
  result: CodeResult,
  context_preview: z.string().nullable().describe('The first characters of the context.'),
  context_length: z.int().nonnegative().describe('Unicode characters of the context.'),
  available_variables: z.array(z.string()),
  iteration: z.int().nonnegative(),
  max_iterations: z.int().min(1),
  metadata: dict().describe('Reason, usage, output totals and reward reason of the step; see docs/rewards.md.'),
})
export type ReplObservation = z.output<typeof ReplObservation>

/** What a state request shows. Holds no ground truth and no key. */
export const ReplState = z.looseObject({
  episode_id: z.string().nullable(),
  step_count: z.int().nonnegative(),
  context: z.string().nullable(),
  task_prompt: z.string().nullable(),
  iteration: z.int().nonnegative(),
  max_iterations: z.int().min(1),
  namespace_keys: z.array(z.string()),
  final_answer: z.string().nullable(),
  total_execution_time: z.number().nonnegative().describe('Seconds.'),
})
export type ReplState = z.output<typeof ReplState>
