/**
 * Answers the calls that agent code makes to the service: `llm_query` and its kin.
 *
 * A call arrives on the worker's private channel, so it is hostile input and is
 * checked here. No model can be configured yet: every prompt is answered with a
 * text that says so, in the shape the helper promises, because code that
 * handles a failed sub-call should not meet an exception instead.
 */

import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import type { WorkerCall } from '../executor/executor.ts'

/** Most prompts of one batch; more is a mistake or an attack on the service's memory. */
const MAX_PROMPTS = 4096

const NO_MODEL =
  'Error: no model is configured for this call. This service answers llm_query and rlm_query ' +
  'only when it has LLM_MODEL and HF_TOKEN, which this version does not read yet. Solve the task without sub-model calls.'

const SingleCall = z.object({ prompt: z.string(), model: z.string().nullish() })
const BatchCall = z.object({ prompts: z.array(z.string()).max(MAX_PROMPTS), model: z.string().nullish() })

const SHAPES = {
  llm_query: 'single',
  llm_query_batched: 'batch',
  llm_batch: 'batch',
  rlm_query: 'single',
  rlm_query_batched: 'batch',
} as const

/** Helpers that a repl episode offers and `answerSubcall` answers. */
export const SUBCALL_NAMES: readonly string[] = Object.keys(SHAPES)

/**
 * Answer one call: a text for a prompt, a list of texts in order for a batch.
 *
 * @throws {ServiceError} `invalid_request` for an unknown name or arguments of the wrong kind; agent code sees it as an exception.
 */
export async function answerSubcall({ name, arguments: given }: WorkerCall): Promise<string | string[]> {
  if (!Object.hasOwn(SHAPES, name)) throw new ServiceError('invalid_request', `there is no call named ${name}`)
  if (SHAPES[name as keyof typeof SHAPES] === 'single') {
    parseArguments(name, SingleCall, given)
    return NO_MODEL
  }
  return parseArguments(name, BatchCall, given).prompts.map(() => NO_MODEL)
}

function parseArguments<Shape extends z.ZodType>(name: string, shape: Shape, given: unknown): z.output<Shape> {
  const parsed = shape.safeParse(given)
  if (parsed.success) return parsed.data
  throw new ServiceError('invalid_request', `${name}: ${z.prettifyError(parsed.error)}`)
}
