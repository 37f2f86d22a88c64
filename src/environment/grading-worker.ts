/** Workers of a grading: opened in its time, closed on every path. The trusted ones run the evaluation and no agent code. */

import { z } from 'zod'
import { messageOf, ServiceError } from '../errors.ts'
import type { EpisodeWorker, Executor } from '../executor/executor.ts'
import type { RunEvidence } from '../reward/task-rubric.ts'
import { type GradingBudget, InfraFailure } from './grading-attempts.ts'
import type { GradingRun } from './grading-seeds.ts'

/** Base64 by file name, as workers are opened with. */
export type Files = Readonly<Record<string, string>>

/** What a fresh worker of a grading starts with; `seed` seeds its generators. */
export type WorkerStart = { files: Files; seed: number | null }

/** The evaluation of one task, in a worker that never ran agent code. */
export type TrustedWorker = {
  makeInputs: (run: GradingRun) => Promise<Files>
  measure: (run: GradingRun, files: Files) => Promise<RunEvidence>
}

/** An evaluation takes well below a second; this is for a machine that is overloaded. */
const EVALUATION_LIMIT_MS = 15_000
/** Between a cell's deadline and its outcome: the interrupt, the grace and the kill. */
const LADDER_MS = 2_000

const number = z.number().nullable()
const Inputs = z.object({ files: z.record(z.string(), z.base64()) })
const Evidence = z.object({
  valid: z.boolean(),
  why: z.string(),
  measures: z.record(z.string(), z.union([number, z.array(number)])),
})

/** Time that a cell may have, if its outcome is to be there within the budget. */
export const cellLimit = (limitMs: number, budget: GradingBudget): number =>
  Math.max(1, Math.min(limitMs, budget.leftMs - LADDER_MS))

/**
 * Use a fresh worker, and close it.
 *
 * @throws {InfraFailure} No worker could be had, or there is no time left.
 */
export async function withWorker<Result>(
  executor: Executor,
  { files, seed }: WorkerStart,
  budget: GradingBudget,
  use: (worker: EpisodeWorker) => Promise<Result>,
): Promise<Result> {
  const opening = executor.open({
    preload: executor.describe().preload.includes('torch') ? 'torch' : 'base',
    variables: {},
    files: { ...files },
    endings: false,
    call_helpers: [],
    seed,
    onCall: ({ name }) => Promise.reject(new Error(`there is no ${name} here`)),
  })
  try {
    const worker = await budget.within(opening).catch(error => Promise.reject(openingFailure(error)))
    return await budget.within(use(worker))
  } finally {
    // Also the one that arrives after everybody has stopped waiting for it.
    opening.then(
      worker => worker.close(),
      // Nothing was opened, and the reason was told above.
      () => undefined,
    )
  }
}

/** Use the evaluation of a task. @param files Its Python files. @throws {InfraFailure} as `withWorker`. */
export function withTrustedWorker<Result>(
  executor: Executor,
  files: Files,
  budget: GradingBudget,
  use: (worker: TrustedWorker) => Promise<Result>,
): Promise<Result> {
  return withWorker(executor, { files, seed: null }, budget, worker => {
    const call = <Report>(name: string, values: Record<string, unknown>, schema: z.ZodType<Report>) =>
      callEvaluation(worker, { name, values, schema, limit_ms: cellLimit(EVALUATION_LIMIT_MS, budget) })
    return use({
      makeInputs: async run => (await call('make_inputs', { run }, Inputs)).files,
      measure: (run, left) => call('measure', { run, files: left }, Evidence),
    })
  })
}

type EvaluationCall<Report> = {
  name: string
  values: Record<string, unknown>
  schema: z.ZodType<Report>
  limit_ms: number
}

async function callEvaluation<Report>(
  worker: EpisodeWorker,
  { name, values, schema, limit_ms }: EvaluationCall<Report>,
): Promise<Report> {
  const { reason, exception, report } = await worker.run({
    code: '',
    limit_ms,
    instrument: { name: 'call', arguments: { module: 'grading.grader', function: name, arguments: values } },
  })
  if (reason !== 'ok') {
    throw new InfraFailure(`the evaluation could not ${wordsFor(name)}: ${firstLine(exception ?? reason)}`)
  }
  const parsed = schema.safeParse(report)
  if (!parsed.success) {
    const where = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
    throw new InfraFailure(`the evaluation could not ${wordsFor(name)}: its report is malformed: ${where}`)
  }
  return parsed.data
}

const wordsFor = (name: string): string => name.replaceAll('_', ' ')
const firstLine = (text: string): string => text.split('\n', 1)[0] ?? ''

function openingFailure(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  const lasting = error.code === 'shutting_down' || error.code === 'isolation_unavailable'
  return new InfraFailure(`no worker could be had for grading: ${messageOf(error)}`, { lasting, cause: error })
}
