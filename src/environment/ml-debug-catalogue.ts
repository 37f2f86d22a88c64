/** What the six actions are called, take and give: for `/tools`, for MCP, and as function definitions for a model. */

import { z } from 'zod'
import type { EpisodeTool, JsonObject, JsonValue } from './environment.ts'
import { toJsonSchema } from './json-schema.ts'
import { ACTION_FIELDS, type ActionType, MAX_CODE_BYTES, MAX_EXPRESSIONS, PROBE_STEPS } from './ml-debug-schemas.ts'

/** One action as a tool. */
type Tool = {
  name: ActionType
  description: string
  /** The fields of the action that it reads. */
  input: z.ZodObject
  /** The fields of the observation that it sets. */
  sets: string[]
  constraints: string[]
  terminal: boolean
}

const { fixed_code, explanation, code, setup_code, target_expression, steps, expressions, proposed_code, fresh } =
  ACTION_FIELDS
const KEPT = 'Variables persist between the calls of an episode unless fresh is true.'
const OUTPUT = ['stdout', 'stderr', 'exit_code', 'timed_out']
const STATISTICS = [
  'shape',
  'dtype',
  'requires_grad',
  'grad_is_none',
  'min_val',
  'max_val',
  'mean_val',
  'is_nan',
  'is_inf',
]
const CODE_SIZE = `code has at most ${MAX_CODE_BYTES / 1024} KiB`

/** Every action; the one that ends the episode comes last. */
function tools(toolTimeoutS: number): Tool[] {
  const timed = `ends after ${toolTimeoutS} s`
  return [
    {
      name: 'execute_snippet',
      description: `Run Python code beside the data of the task (data.npz, config.json, train.py, workbench.py). ${KEPT}`,
      input: z.strictObject({ code, fresh: fresh.default(false) }),
      sets: OUTPUT,
      constraints: [timed, CODE_SIZE],
      terminal: false,
    },
    {
      name: 'inspect_tensor',
      description:
        'Evaluate an expression and describe the tensor, array or number: shape, dtype, gradient, statistics, NaN and Inf. ' +
        `Of a module its weight and its parameters. ${KEPT}`,
      input: z.strictObject({ setup_code: setup_code.default(''), target_expression, fresh: fresh.default(false) }),
      sets: [...STATISTICS, ...OUTPUT],
      constraints: [timed, CODE_SIZE],
      terminal: false,
    },
    {
      name: 'get_variable_state',
      description: `Evaluate expressions and show type, value, shape and repr of each. ${KEPT}`,
      input: z.strictObject({ setup_code: setup_code.default(''), expressions, fresh: fresh.default(false) }),
      sets: ['results', ...OUTPUT],
      constraints: [timed, `${MAX_EXPRESSIONS} expressions at most`, CODE_SIZE],
      terminal: false,
    },
    {
      name: 'run_training_probe',
      description:
        'Run a training script until its optimizers have made the given number of steps, and show losses, gradients and updates. ' +
        'Without code it is the broken script of the task.',
      input: z.strictObject({
        code: code.default(''),
        steps: steps.default(PROBE_STEPS.fallback),
        fresh: fresh.default(false),
      }),
      sets: ['losses', 'grad_norms', 'optimizer_param_count', 'final_loss', 'loss_is_nan', 'loss_is_inf', ...OUTPUT],
      constraints: [timed, `${PROBE_STEPS.min} to ${PROBE_STEPS.max} optimizer steps`, CODE_SIZE],
      terminal: false,
    },
    {
      name: 'inspect_diff',
      description: 'Compare a proposed script with the broken one, as diff -u does. Nothing is run.',
      input: z.strictObject({ proposed_code }),
      sets: ['diff', 'lines_changed', 'additions', 'deletions'],
      constraints: [CODE_SIZE],
      terminal: false,
    },
    {
      name: 'submit_fix',
      description:
        'Submit the whole repaired script. It runs on data and seeds never seen before, what it leaves is measured, and the episode ends.',
      input: z.strictObject({ fixed_code, explanation: explanation.default('') }),
      sets: ['success', 'grader_details', 'metrics', 'last_reward', 'error_log', 'losses', 'final_loss', ...OUTPUT],
      constraints: ['once in an episode', 'printed metrics earn nothing', CODE_SIZE],
      terminal: true,
    },
  ]
}

/** The actions as an MCP client sees them. */
export function episodeTools(toolTimeoutS: number): EpisodeTool[] {
  return tools(toolTimeoutS).map(({ name, description, input }) => ({
    name,
    description,
    input,
    toAction: given => ({ ...given, action_type: name }),
  }))
}

/** What `GET /tools` answers; `functions` can be handed to a model that calls functions, as it is. */
export function toolList(toolTimeoutS: number, maxTurns: number): JsonObject {
  const all = tools(toolTimeoutS)
  return {
    tools: all.map(tool => ({
      name: tool.name,
      description: tool.description,
      action_fields: fieldTexts(tool.input),
      observation_fields: tool.sets,
      constraints: tool.constraints,
      terminal: tool.terminal,
      parameters: parametersOf(tool.input),
    })),
    functions: all.map(({ name, description, input }) => ({
      type: 'function',
      function: { name, description, parameters: parametersOf(input) },
    })),
    max_turns_per_episode: maxTurns,
    usage: 'POST /step with {"action": {"action_type": "<name>", <fields>, "episode_id": "<id of the reset>"}}',
  }
}

/** Name of each field to what it is, in words. */
export function fieldTexts(schema: z.ZodObject): JsonObject {
  const { properties } = toJsonSchema(schema, 'input')
  const entries = Object.entries((properties ?? {}) as Record<string, { description?: string; type?: string }>)
  return Object.fromEntries(entries.map(([name, { description, type }]) => [name, description ?? type ?? '']))
}

function parametersOf(input: z.ZodObject): JsonValue {
  const { $schema: _dialect, ...parameters } = toJsonSchema(input, 'input')
  // Made of JSON values only.
  return parameters as JsonObject
}
