/** One episode of the repl environment: its worker, its step count, and its end. */

import type { CellOutcome, EpisodeWorker } from '../executor/executor.ts'
import { rewardReplStep } from '../reward/repl-reward.ts'
import type { Episode, JsonObject, StepOptions, StepResult } from './environment.ts'
import { endLine, failedAnyway, withNotes } from './notes.ts'
import { idleFacts, outcomeFacts } from './outcome-facts.ts'
import { PrintedFinal } from './printed-final.ts'
import { findEnding } from './repl-ending.ts'
import {
  messageResult,
  openingResult,
  repeatedResult,
  type ShownContext,
  type ShownResult,
  stepResult,
} from './repl-observation.ts'
import type { ReplStart } from './repl-reset.ts'
import { ReplAction } from './repl-schemas.ts'
import { limitMessage, restartedHint, SUBMITTED_MESSAGE, stateLostHint } from './repl-text.ts'

/** Limits of an episode. */
export type ReplLimits = {
  maxIterations: number
  /** Run the step that reaches `maxIterations`; otherwise it ends the episode without running. */
  runLastStep: boolean
  /** Limit of a step when the caller names none, in seconds. */
  stepTimeoutS: number
  /** Highest limit a caller can name, in seconds. */
  stepCeilingS: number
}

/** How a step changed the episode. */
type Step = {
  shown: ShownResult
  context: ShownContext | null
  variables: string[]
  facts: JsonObject
  ended: 'answer' | 'limit' | null
  /** The answer that ends the episode; at the limit, what `answer['content']` held. */
  answer: string | null
  infra: boolean
}

/** Made by the repl environment's `open`. */
export class ReplEpisode implements Episode {
  readonly id: string
  readonly initial: StepResult
  readonly #start: ReplStart
  readonly #worker: EpisodeWorker
  readonly #limits: ReplLimits
  /** Names that a fresh process has. */
  readonly #openingVariables: string[]
  #iteration = 0
  #variables: string[]
  /** `answer['content']` after the last cell. */
  #draft: string | null = null
  #finalAnswer: string | null = null
  #totalSeconds = 0
  #terminal: StepResult | null = null

  constructor(start: ReplStart, worker: EpisodeWorker, limits: ReplLimits) {
    this.id = start.episodeId
    this.#start = start
    this.#worker = worker
    this.#limits = limits
    this.#openingVariables = worker.variables
    this.#variables = worker.variables
    const { maxIterations } = limits
    this.initial = openingResult(start, { variables: this.#variables, iteration: 0, maxIterations })
  }

  async step(action: unknown, options: StepOptions): Promise<StepResult> {
    if (this.#terminal !== null) return repeatedResult(this.#terminal)
    const { code, is_final, final_answer } = ReplAction.parse(action)
    this.#iteration++
    if (is_final) return this.#conclude(messageStep(SUBMITTED_MESSAGE, 'answer', final_answer ?? ''))
    const { maxIterations, runLastStep } = this.#limits
    if (!runLastStep && this.#iteration >= maxIterations) {
      return this.#conclude(messageStep(limitMessage(maxIterations), 'limit', this.#draft))
    }
    return this.#conclude(await this.#run(code, this.#limitMs(options.timeout_s)))
  }

  state(): JsonObject {
    return {
      episode_id: this.id,
      step_count: this.#iteration,
      context: this.#start.context,
      task_prompt: this.#start.taskPrompt,
      iteration: this.#iteration,
      max_iterations: this.#limits.maxIterations,
      namespace_keys: this.#variables,
      final_answer: this.#finalAnswer,
      total_execution_time: this.#totalSeconds,
    }
  }

  close(): void {
    this.#worker.close()
  }

  async #run(code: string, limitMs: number): Promise<Step> {
    const printed = new PrintedFinal(this.#start.context)
    const outcome = await this.#worker.run({ code, limit_ms: limitMs, onStdout: chunk => printed.push(chunk) })
    const ending = await findEnding(outcome, printed.finish(), names => this.#worker.lookup(names))
    const { answer, notes, state_kept } = ending
    this.#variables = state_kept ? outcome.variables : this.#openingVariables
    this.#draft = outcome.answer?.content || null
    this.#totalSeconds += outcome.usage.wall_ms / 1000
    const hasContext = this.#start.context !== ''
    if (outcome.restarted !== null) notes.unshift(restartedHint(outcome.restarted, hasContext))
    if (!state_kept) notes.push(stateLostHint(outcome.state_kept ? 'timeout' : outcome.reason, hasContext))
    else if (outcome.reason !== 'ok' && outcome.exception === null) notes.push(failedAnyway(outcome.reason))
    const step: Step = {
      shown: shownOutcome(outcome, notes),
      context: this.#start,
      variables: this.#variables,
      facts: outcomeFacts({ ...outcome, state_kept: state_kept && outcome.restarted === null }),
      ended: answer === null ? null : 'answer',
      answer,
      infra: outcome.reason === 'infra_error',
    }
    const { maxIterations } = this.#limits
    if (answer !== null || this.#iteration < maxIterations) return step
    const stdout = endLine(step.shown.stdout) + limitMessage(maxIterations)
    return { ...step, shown: { ...step.shown, stdout, success: false }, ended: 'limit', answer: this.#draft }
  }

  #conclude({ shown, context, variables, facts, ended, answer, infra }: Step): StepResult {
    const { taskPrompt, expected } = this.#start
    const { maxIterations } = this.#limits
    const reward = rewardReplStep({ ended, answer, failed: !shown.success, infra, expected })
    if (answer !== null) this.#finalAnswer = answer
    const result = stepResult({
      shown,
      context,
      progress: { variables, iteration: this.#iteration, maxIterations },
      metadata: {
        task_prompt: taskPrompt,
        final_answer: answer,
        execution_time: shown.execution_time,
        ...facts,
        terminated: ended === 'answer',
        truncated: ended === 'limit',
        reward_reason: reward.reason,
        ...(ended !== null && { total_execution_time: this.#totalSeconds, total_iterations: this.#iteration }),
      },
      reward: reward.value,
      done: ended !== null,
    })
    if (ended !== null) {
      this.#terminal = result
      // Nothing runs after the end, so the worker is worth more to the next episode.
      this.#worker.close()
    }
    return result
  }

  #limitMs(askedS: number | undefined): number {
    const { stepTimeoutS, stepCeilingS } = this.#limits
    const seconds = askedS !== undefined && askedS > 0 ? askedS : stepTimeoutS
    return Math.min(seconds, stepCeilingS) * 1000
  }
}

function messageStep(message: string, ended: 'answer' | 'limit', answer: string | null): Step {
  return {
    shown: messageResult(message, ended === 'answer'),
    context: null,
    variables: [],
    facts: idleFacts(message),
    ended,
    answer,
    infra: false,
  }
}

function shownOutcome(outcome: CellOutcome, notes: readonly string[]): ShownResult {
  // A cell that got no process could not write its own failure there.
  const stderr =
    outcome.stderr.text === '' && outcome.exception !== null ? `${outcome.exception}\n` : outcome.stderr.text
  return {
    stdout: outcome.stdout.text,
    stderr: withNotes(stderr, notes),
    locals_snapshot: outcome.locals,
    execution_time: outcome.usage.wall_ms / 1000,
    success: outcome.reason === 'ok',
    exception: outcome.exception,
  }
}
