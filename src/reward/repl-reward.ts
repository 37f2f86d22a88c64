/** The reward of one repl step. docs/rewards.md shows the same rules as a table. */

import { type AnswerEvidence, type ExpectedAnswer, exactMatch } from './answer.ts'
import type { Rubric } from './rubric.ts'

/** The fixed amounts. They are rewards, not scores, so they may be negative. */
export const REPL_REWARDS = Object.freeze({
  /** Any answer, in an episode that was given no expected one. */
  answered: 1,
  /** An ordinary step that ran to its end. */
  step: 0,
  /** A step that raised, was cut or was killed. */
  failed: -0.05,
  /** The iteration limit, without an answer that could be graded. */
  limit: -0.1,
})

/** What the service knows about one step. */
export type ReplEvidence = {
  /** `answer`: a final answer came; `limit`: the iteration limit ended the episode; null: it goes on. */
  ended: 'answer' | 'limit' | null
  /** The final answer; at the limit, what `answer['content']` held. */
  answer: string | null
  /** The cell raised, was cut or was killed. */
  failed: boolean
  /** The service failed, so the step says nothing about the agent. */
  infra: boolean
  /** Ground truth of the episode; null when the reset gave none. */
  expected: ExpectedAnswer | null
}

/** `value` is null when the step can't be judged. */
export type Reward = { readonly value: number | null; readonly reason: string }

/**
 * Judge one step.
 *
 * @param rubric Judges the answer when the episode has an expected one.
 */
export function rewardReplStep(evidence: ReplEvidence, rubric: Rubric<AnswerEvidence> = exactMatch): Reward {
  const { ended, answer, expected } = evidence
  if (evidence.infra) return { value: null, reason: 'the service failed; the step is not scored' }
  if (ended !== null && expected !== null && answer !== null) return rubric({ answer, expected })
  if (ended === 'answer')
    return { value: REPL_REWARDS.answered, reason: 'final answer given; nothing to compare it with' }
  if (ended === 'limit') return { value: REPL_REWARDS.limit, reason: 'iteration limit reached' }
  return evidence.failed
    ? { value: REPL_REWARDS.failed, reason: 'the code failed' }
    : { value: REPL_REWARDS.step, reason: 'the code ran' }
}
