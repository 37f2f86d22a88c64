/**
 * Grades submissions: runs them on data they have never seen, and has what they left measured by somebody else.
 *
 * A submission runs three times, each time in a fresh worker. What the first run
 * prints, on the data of the episode, is what the agent sees. The other two
 * leave files, which a worker that never ran agent code measures; only these
 * measures reach the reward.
 */

import { availableParallelism } from 'node:os'
import { ServiceError } from '../errors.ts'
import type { Executor } from '../executor/executor.ts'
import { judgeRepair, type RunEvidence, type TaskScore } from '../reward/task-rubric.ts'
import type { JsonObject } from './environment.ts'
import { Busy, GradingBudget, InfraFailure } from './grading-attempts.ts'
import { explainGrade } from './grading-details.ts'
import { type GradingFiles, readGradingFiles } from './grading-files.ts'
import { GradingInputs } from './grading-inputs.ts'
import { runScript, SCRIPT_LIMITS, type ScriptLimits, type ScriptResult, type ScriptRun } from './grading-script.ts'
import { type GradingRun, hiddenRuns, KINDS, publicRun } from './grading-seeds.ts'
import { GradingSlots, type Ticket } from './grading-slots.ts'
import { type Files, type TrustedWorker, withTrustedWorker, withWorker } from './grading-worker.ts'
import type { Task } from './task-folder.ts'

/** A grade, or the word that there is none because the service failed; that says nothing about the submission. */
export type Grade =
  | {
      kind: 'scored'
      /** In [0.01, 0.99], four decimals. */
      score: number
      /** Distance between the scores of the two hidden runs. */
      spread: number
      /** What was measured and what it earned, for whoever asks why. */
      details: JsonObject
      /** The run on the episode's own data. */
      shown: ScriptRun
      /** The start of what that run printed, longer than `shown.stdout` keeps. */
      printed: string
    }
  | { kind: 'infra'; message: string }

export type GradeRequest = {
  task: Task
  /** The seed of the episode. */
  seed: number
  /** The repaired script. */
  code: string
  /** Time until the grade has to be there, in milliseconds. */
  budgetMs: number
}

export type GraderOptions = {
  executor: Executor
  tasksFolder: string
  /** Secret of the hidden seeds. */
  salt: string
  /** Scripts that run at once; 0 takes the number of cores. */
  gradings: number
  /** Of one run of a submission. */
  limits?: ScriptLimits
}

/** One grading: its request, its place in the line and what it may still spend. */
type Job = GradeRequest & { budget: GradingBudget; ticket: Ticket; evaluation: Files }

/** The one who knows the salt. */
export class Grader {
  readonly #executor: Executor
  readonly #salt: string
  readonly #files: GradingFiles
  readonly #slots: GradingSlots
  readonly #inputs: GradingInputs
  readonly #limits: ScriptLimits

  /** @throws {ServiceError} `invalid_config` if the folder of the tasks can't be read. */
  constructor({ executor, tasksFolder, salt, gradings, limits = SCRIPT_LIMITS }: GraderOptions) {
    this.#executor = executor
    this.#salt = salt
    this.#files = readGradingFiles(tasksFolder)
    this.#slots = new GradingSlots(gradings === 0 ? availableParallelism() : gradings)
    this.#inputs = new GradingInputs(executor)
    this.#limits = limits
  }

  /**
   * What the worker of an episode starts with: `data.npz`, `config.json`, `workbench.py` and the broken script as `train.py`.
   *
   * @returns Base64 by file name.
   * @throws {ServiceError} If the service can't make them.
   */
  async publicFiles(task: Task, seed: number): Promise<Record<string, string>> {
    const run = publicRun(this.#salt, task.id, seed)
    try {
      const inputs = await this.#inputs.of(task.id, run, this.#evaluationOf(task))
      const train = Buffer.from(task.brokenCode).toString('base64')
      return { ...inputs, ...this.#files.workbench, 'train.py': train }
    } catch (error) {
      if (!(error instanceof InfraFailure)) throw error
      if (error.cause instanceof ServiceError) throw error.cause
      throw new ServiceError('internal', `the data of ${task.id} could not be made: ${error.message}`, { cause: error })
    }
  }

  /** Grade a submission. The same task, seed, code and salt give the same score. Never throws for what code does. */
  async grade(request: GradeRequest): Promise<Grade> {
    try {
      return await this.#grade(this.#jobFor(request))
    } catch (error) {
      if (error instanceof InfraFailure) return { kind: 'infra', message: error.message }
      throw error
    }
  }

  /**
   * Judge a submission by its hidden runs alone: the verdict that `grade` comes to, for whoever needs nothing shown.
   *
   * @throws {ServiceError} `internal` if the service failed.
   */
  async judge(request: GradeRequest): Promise<TaskScore> {
    try {
      return await this.#judge(this.#jobFor(request))
    } catch (error) {
      if (!(error instanceof InfraFailure)) throw error
      throw new ServiceError('internal', error.message, { cause: error })
    }
  }

  #jobFor(request: GradeRequest): Job {
    const evaluation = this.#evaluationOf(request.task)
    return { ...request, budget: new GradingBudget(request.budgetMs), ticket: this.#slots.ticket(), evaluation }
  }

  async #grade(job: Job): Promise<Grade> {
    const { task, seed } = job
    const open = await this.#run(job, publicRun(this.#salt, task.id, seed))
    const { ended } = open
    // What a limit ends on one data set it ends on the others; the hidden runs would only cost time.
    const verdict =
      ended === null
        ? await this.#judge(job)
        : judgeEvidence(
            task,
            KINDS.map(() => invalid(ended)),
          )
    const scores = verdict.runs.map(run => run.score)
    return {
      kind: 'scored',
      score: verdict.score,
      spread: Number((Math.max(...scores) - Math.min(...scores)).toFixed(4)),
      details: explainGrade(verdict),
      shown: open.shown,
      printed: open.printed,
    }
  }

  async #judge(job: Job): Promise<TaskScore> {
    const { task, seed } = job
    const runs = hiddenRuns(this.#salt, task.id, seed)
    const results = await Promise.all(runs.map(run => this.#run(job, run)))
    return judgeEvidence(task, await this.#measure(job, runs, results))
  }

  /** Run the submission on one data set, when it is its turn. */
  async #run(job: Job, run: GradingRun): Promise<ScriptResult> {
    const { task, code, budget, ticket, evaluation } = job
    const inputs = await budget.within(this.#inputs.of(task.id, run, evaluation))
    // Generators that a script forgets to seed give the same numbers each time, too.
    const start = { files: { ...inputs, ...this.#files.workbench }, seed: run.init_seed }
    return await budget.attempt(async () => {
      const result = await this.#slots.run(ticket, budget.leftMs, () =>
        withWorker(this.#executor, start, budget, worker =>
          runScript(worker, code, task.outputs, budget, this.#limits),
        ),
      )
      if (result === null) throw new Busy()
      return result
    })
  }

  async #measure(job: Job, runs: GradingRun[], results: ScriptResult[]): Promise<RunEvidence[]> {
    const measureAll = async (evaluation: TrustedWorker) => {
      const evidence: RunEvidence[] = []
      for (const [index, run] of runs.entries()) {
        const result = results[index]
        if (result !== undefined) evidence.push(await measureOne(evaluation, run, result))
      }
      return evidence
    }
    return await job.budget.attempt(() => withTrustedWorker(this.#executor, job.evaluation, job.budget, measureAll))
  }

  #evaluationOf(task: Task): Files {
    const files = this.#files.evaluations.get(task.id)
    if (files === undefined) throw new ServiceError('invalid_config', `there is no evaluation of the task ${task.id}`)
    return files
  }
}

async function measureOne(evaluation: TrustedWorker, run: GradingRun, result: ScriptResult): Promise<RunEvidence> {
  const { ended, files, refused, memory_growth_mib, shown } = result
  if (ended !== null) return invalid(ended)
  const { valid, why, measures } = await evaluation.measure(run, files)
  if (valid) return { valid, why, measures: { ...measures, memory_growth_mib } }
  const unread = Object.entries(refused).find(([name]) => why.startsWith(`${name}:`))
  // No more than that: an exit code is chosen by the script, which has seen hidden rows.
  const crash = shown.exit_code === 0 ? '' : ' (the script ended with an error)'
  return invalid((unread === undefined ? why : `${unread[0]}: ${unread[1]}`) + crash)
}

const invalid = (why: string): RunEvidence => ({ valid: false, why, measures: {} })

function judgeEvidence(task: Task, evidence: RunEvidence[]): TaskScore {
  try {
    return judgeRepair(task.rubric, evidence)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new InfraFailure(`the rubric of ${task.id} does not fit its evaluation: ${cause.message}`, { cause })
  }
}
