/** One episode of the ml_debug environment: its turns, its tools, its one submission, and its end. */

import { performance } from 'node:perf_hooks'
import type { Episode, JsonObject, StepOptions, StepResult } from './environment.ts'
import type { Grader } from './grader.ts'
import { isBlank, objectionTo, withoutFences } from './ml-debug-fields.ts'
import { type Answer, LEAST_REWARD, observationOf } from './ml-debug-observation.ts'
import { MlDebugAction } from './ml-debug-schemas.ts'
import type { MlDebugStart } from './ml-debug-start.ts'
import { reasonOf, submissionFacts, submissionFields } from './ml-debug-submission.ts'
import { ALREADY_COMPLETE, EMPTY_SUBMISSION, infraError, READY_MESSAGE, turnsExceeded } from './ml-debug-text.ts'
import { performTool } from './ml-debug-tools.ts'
import type { MlDebugWorker } from './ml-debug-worker.ts'
import { idleFacts } from './outcome-facts.ts'

/** Limits of an episode. */
export type MlDebugLimits = {
  maxTurns: number
  /** Longest time for a tool, and the limit when the caller names none, in seconds. */
  toolTimeoutS: number
  /** Nothing that a step does may take longer, in seconds. */
  stepCeilingS: number
}

/** What an action did to the episode. */
type Turn = {
  error?: string | null
  fields?: JsonObject
  /** Fields of `metadata`. */
  facts?: JsonObject
  reward?: number | null
  why: string
  ended?: 'submission' | 'limit'
}

const TOOL_REWARD = 'only a submission earns a reward'

/** Made by the ml_debug environment's `open`. */
export class MlDebugEpisode implements Episode {
  readonly id: string
  readonly initial: StepResult
  readonly #start: MlDebugStart
  readonly #worker: MlDebugWorker
  readonly #grader: Grader
  readonly #limits: MlDebugLimits
  readonly #onClose: () => void
  #turn = 0
  #givenBack = 0
  #bestReward = 0
  #lastReward = 0
  #ended: 'submission' | 'limit' | null = null

  /** @param onClose Called when the episode is closed; the worker is closed by then. */
  constructor(start: MlDebugStart, worker: MlDebugWorker, grader: Grader, limits: MlDebugLimits, onClose: () => void) {
    this.id = start.episodeId
    this.#start = start
    this.#worker = worker
    this.#grader = grader
    this.#limits = limits
    this.#onClose = onClose
    this.initial = this.#result('reset', {
      facts: {
        ...idleFacts(''),
        message: READY_MESSAGE,
        task_name: start.task.name,
        difficulty: start.task.difficulty,
      },
      why: TOOL_REWARD,
    })
  }

  async step(action: unknown, options: StepOptions): Promise<StepResult> {
    const given = withoutFences(MlDebugAction.parse(action))
    if (this.#ended !== null) {
      const why = 'the episode is over; nothing was run'
      return this.#result(given.action_type, { error: ALREADY_COMPLETE, reward: LEAST_REWARD, why })
    }
    this.#turn++
    return this.#result(given.action_type, await this.#perform(given, options))
  }

  state(): JsonObject {
    const { task, seed } = this.#start
    return {
      episode_id: this.id,
      step_count: this.#turn,
      task_id: task.id,
      seed,
      turn: this.#turn,
      ...this.#budget(),
      submitted: this.#ended === 'submission',
      done: this.#ended !== null,
      best_reward: this.#bestReward,
    }
  }

  close(): void {
    this.#worker.close()
    this.#onClose()
  }

  async #perform(action: MlDebugAction, options: StepOptions): Promise<Turn> {
    const { maxTurns } = this.#limits
    if (this.#turn > maxTurns) {
      const why = `the ${maxTurns} turns were used without a submission`
      return { error: turnsExceeded(maxTurns), reward: LEAST_REWARD, why, ended: 'limit' }
    }
    const objection = objectionTo(action)
    const { action_type } = action
    if (action_type === 'submit_fix') return await this.#submit(action, objection)
    if (objection !== null) return { error: objection, why: TOOL_REWARD }
    const workshop = { worker: this.#worker, task: this.#start.task }
    const limitMs = this.#limitMs(options.timeout_s)
    const { infra, ...answer } = await performTool(workshop, { ...action, action_type }, this.#turn, limitMs)
    return { ...answer, why: infra ? this.#giveBack() : TOOL_REWARD }
  }

  /**
   * Let a turn that the service spoilt not count, as often as an episode has turns: code that finds
   * a way to spoil its own turns must not play for ever.
   *
   * @returns What became of the turn, in words.
   */
  #giveBack(): string {
    if (this.#givenBack >= this.#limits.maxTurns) return 'the service failed, as it often did here; the turn counts'
    this.#givenBack++
    this.#turn--
    return 'the service failed; the turn does not count'
  }

  async #submit({ fixed_code, code }: MlDebugAction, objection: string | null): Promise<Turn> {
    const script = isBlank(fixed_code) ? code : fixed_code
    const refused = objection ?? (isBlank(script) ? EMPTY_SUBMISSION : null)
    if (refused !== null) {
      return { error: refused, reward: LEAST_REWARD, why: 'there was nothing to grade', ended: 'submission' }
    }
    const { task, seed } = this.#start
    const startedAt = performance.now()
    const budgetMs = this.#limits.stepCeilingS * 1000
    const grade = await this.#grader.grade({ task, seed, code: script, budgetMs })
    if (grade.kind === 'infra') {
      const facts = { reason: 'infra_error' }
      return { error: infraError(grade.message), facts, why: `${this.#giveBack()}; submit again` }
    }
    this.#bestReward = grade.score
    return {
      fields: submissionFields(grade, this.#turn),
      facts: submissionFacts(grade, performance.now() - startedAt),
      reward: grade.score,
      why: reasonOf(grade),
      ended: 'submission',
    }
  }

  #result(
    actionType: Answer['actionType'],
    { error = null, fields = {}, facts, reward = null, why, ended }: Turn,
  ): StepResult {
    if (ended !== undefined) {
      this.#ended = ended
      // Nothing runs after the end, so the worker is worth more to the next episode.
      this.#worker.close()
      this.#lastReward = reward ?? 0
    }
    const { task, seed } = this.#start
    const done = this.#ended !== null
    const metadata = {
      ...idleFacts(''),
      reward_reason: why,
      ...facts,
      task_id: task.id,
      seed,
      turn: this.#turn,
      ...this.#budget(),
      terminated: this.#ended === 'submission',
      truncated: this.#ended === 'limit',
    }
    const place = { episodeId: this.id, task, turn: this.#turn, done, lastReward: this.#lastReward }
    const observation = observationOf(place, { actionType, error, fields })
    return { observation: { ...observation, metadata }, reward, done, metadata }
  }

  #budget(): { max_turns: number; turns_remaining: number } {
    const { maxTurns } = this.#limits
    return { max_turns: maxTurns, turns_remaining: Math.max(maxTurns - this.#turn, 0) }
  }

  #limitMs(askedS: number | undefined): number {
    const { toolTimeoutS, stepCeilingS } = this.#limits
    const seconds = askedS !== undefined && askedS > 0 ? Math.min(askedS, toolTimeoutS) : toolTimeoutS
    return Math.min(seconds, stepCeilingS) * 1000
  }
}
