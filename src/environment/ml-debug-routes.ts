/** What ml_debug answers beside its episodes: its tasks and tools, the state of an episode, and a grade without one. */

import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import type { EnvironmentRoute, Episode, JsonObject } from './environment.ts'
import { foldSeed, seedField, text } from './fields.ts'
import type { Grader } from './grader.ts'
import { fieldTexts, toolList } from './ml-debug-catalogue.ts'
import { stripFences } from './ml-debug-fences.ts'
import { isBlank } from './ml-debug-fields.ts'
import { ACTION_TYPES, MAX_CODE_BYTES, MlDebugAction } from './ml-debug-schemas.ts'
import { findTask } from './ml-debug-start.ts'
import { breakdownOf } from './ml-debug-submission.ts'
import { noSession, tooLong } from './ml-debug-text.ts'
import type { Task } from './task-folder.ts'

/** What the routes answer from. */
export type RouteSources = {
  tasks: readonly Task[]
  grader: Grader
  /** Live episodes of every transport, by id. */
  episodes: ReadonlyMap<string, Episode>
  version: string
  /** Throws a `ServiceError` where nothing can be graded. */
  requireTorch: () => void
  maxTurns: number
  toolTimeoutS: number
  stepCeilingS: number
}

const NO_INPUT = z.object({})
const SESSION_USAGE = 'GET /session/state?episode_id=<id>'
const CLAIMED =
  'is not taken: the grader runs fixed_code itself and measures what it leaves; send task_id and fixed_code'

/** A field of a result that a client claims. It is named so that the refusal can say why. */
const claimed = () =>
  z
    .unknown()
    .optional()
    .refine(value => value === undefined, { error: `claimed output ${CLAIMED}` })
    .describe('Refused: the grader runs the code itself.')

const GraderRequest = z.strictObject({
  task_id: text(),
  fixed_code: text()
    .refine(code => !isBlank(stripFences(code)), { error: 'fixed_code is empty: there is nothing to grade' })
    .refine(code => Buffer.byteLength(code) <= MAX_CODE_BYTES, {
      error: ({ input }) => tooLong('fixed_code', Buffer.byteLength(String(input)), MAX_CODE_BYTES, 'bytes'),
    })
    .describe('The whole repaired script.'),
  seed: seedField(),
  stdout: claimed(),
  stderr: claimed(),
  exit_code: claimed(),
  elapsed: claimed(),
  timed_out: claimed(),
})

const GraderReply = z.looseObject({
  task_id: z.string(),
  score: z.number(),
  breakdown: z.record(z.string(), z.number()).describe('What each credit added.'),
})
const TasksReply = z.looseObject({
  tasks: z.array(z.object({ id: z.string(), name: z.string(), difficulty: z.string() })),
  action_schema: z.record(z.string(), z.string()),
  tools: z.array(z.string()),
  max_turns_per_episode: z.int(),
})
const AnyReply = z.looseObject({})

/** The routes, in the order in which OpenAPI lists them. */
export function createRoutes(sources: RouteSources): EnvironmentRoute[] {
  const { tasks, maxTurns, toolTimeoutS, version, episodes } = sources
  return [
    {
      method: 'GET',
      path: '/reset',
      summary: 'Whether the service is there',
      input: NO_INPUT,
      reply: z.object({ status: z.literal('ok'), message: z.string() }),
      handle: async () => ({ status: 'ok', message: 'POST /reset with {"task_id": "task1"} starts an episode.' }),
    },
    {
      method: 'POST',
      path: '/health',
      summary: 'Whether the service is there, with its version',
      input: z.looseObject({}),
      reply: z.object({ status: z.literal('ok'), version: z.string() }),
      handle: async () => ({ status: 'ok', version }),
    },
    {
      method: 'GET',
      path: '/session/state',
      summary: 'How far an episode is, whichever transport plays it',
      input: z.object({ episode_id: text().optional() }),
      reply: AnyReply,
      handle: async ({ episode_id }) => sessionState(episodes, typeof episode_id === 'string' ? episode_id : ''),
    },
    {
      method: 'GET',
      path: '/tasks',
      summary: 'The tasks and the fields of an action',
      input: NO_INPUT,
      reply: TasksReply,
      handle: async () => ({
        tasks: tasks.map(({ id, name, difficulty }) => ({ id, name, difficulty })),
        action_schema: fieldTexts(MlDebugAction),
        tools: [...ACTION_TYPES],
        max_turns_per_episode: maxTurns,
      }),
    },
    {
      method: 'GET',
      path: '/tools',
      summary: 'The actions as tools, also as function definitions for a model',
      input: NO_INPUT,
      reply: AnyReply,
      handle: async () => toolList(toolTimeoutS, maxTurns),
    },
    {
      method: 'POST',
      path: '/grader',
      summary: 'Grade a repaired script without an episode',
      input: GraderRequest.extend({ task_id: taskIdField(tasks) }),
      reply: GraderReply,
      handle: input => grade(sources, GraderRequest.parse(input)),
    },
  ]
}

function taskIdField(tasks: readonly Task[]) {
  const known = tasks.map(({ id }) => id).join(', ')
  return text()
    .refine(id => tasks.some(task => task.id === id), { error: `unknown task; expected one of ${known}` })
    .describe(`One of ${known}.`)
}

function sessionState(episodes: ReadonlyMap<string, Episode>, id: string): JsonObject {
  if (id === '') return { error: 'episode_id is required', usage: SESSION_USAGE }
  const episode = episodes.get(id)
  if (episode === undefined)
    return { error: noSession(id), usage: SESSION_USAGE, hint: 'POST /reset answers with the id' }
  const state = episode.state()
  return { ...state, step: state.step_count ?? 0 }
}

async function grade(
  { tasks, grader, stepCeilingS, requireTorch }: RouteSources,
  { task_id, fixed_code, seed: asked }: z.output<typeof GraderRequest>,
): Promise<JsonObject> {
  requireTorch()
  const task = findTask(tasks, task_id)
  const seed = foldSeed(asked ?? 0)
  const given = await grader.grade({ task, seed, code: stripFences(fixed_code), budgetMs: stepCeilingS * 1000 })
  if (given.kind === 'infra') throw new ServiceError('worker_start_failed', `not graded: ${given.message}`)
  const { score, spread, details, shown } = given
  return {
    task_id,
    seed,
    score,
    breakdown: breakdownOf(details),
    spread,
    grader_details: details,
    exit_code: shown.exit_code,
    timed_out: shown.timed_out,
    elapsed_seconds: shown.elapsed_s,
    stdout: shown.stdout,
    stderr: shown.stderr,
  }
}
