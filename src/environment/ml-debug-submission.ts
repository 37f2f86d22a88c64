/** A grade as an observation shows it: the reward and its reasons, and what the script printed about itself. */

import { z } from 'zod'
import type { JsonObject } from './environment.ts'
import type { Grade } from './grader.ts'
import { endLine } from './notes.ts'
import { idleFacts } from './outcome-facts.ts'
import { readPrintedMetrics } from './printed-metrics.ts'

/** A reward that counts as a repair. */
const SUCCESS = 0.7
/** Two hidden runs of one script that score further apart than this depend on their seed. */
const CONSISTENT_SPREAD = 0.15

export type Scored = Extract<Grade, { kind: 'scored' }>

const Details = z.object({
  reason: z.string(),
  runs: z.array(z.object({ credits: z.record(z.string(), z.object({ value: z.number(), weight: z.number() })) })),
})

/** Fields of the observation of a graded submission. @param turn Number of the submission in its episode. */
export function submissionFields(grade: Scored, turn: number): JsonObject {
  const { score, spread, details, shown, printed } = grade
  const { stdout, stderr, exit_code, timed_out, elapsed_s } = shown
  const { losses, finalLoss, valAcc, nanCount } = readPrintedMetrics(printed)
  const final_loss = finiteOrNull(finalLoss)
  return {
    stdout,
    stderr,
    exit_code,
    timed_out,
    losses: losses.map(finiteOrNull),
    final_loss,
    loss_is_nan: nanCount > 0 || Number.isNaN(finalLoss),
    loss_is_inf: [...losses, finalLoss].some(value => Math.abs(value ?? 0) === Number.POSITIVE_INFINITY),
    success: score >= SUCCESS,
    grader_details: details,
    error_log: `${endLine(stdout)}${stderr}`,
    last_reward: score,
    metrics: {
      exit_code,
      elapsed_seconds: elapsed_s,
      timed_out,
      step: turn,
      best_reward_so_far: score,
      final_loss,
      nan_count: nanCount,
      val_acc: finiteOrNull(valAcc),
      consistency_flag: spread > CONSISTENT_SPREAD,
      // Of the two hidden runs.
      reward_variance: rounded((spread / 2) ** 2, 6),
      reward_breakdown: breakdownOf(details),
    },
  }
}

/** Fields of `metadata` of a graded submission. @param wallMs Time that grading took. */
export function submissionFacts({ shown }: Scored, wallMs: number): JsonObject {
  const { usage, ...facts } = idleFacts(shown.stdout)
  return { ...facts, reason: shown.reason, usage: { ...(usage as JsonObject), wall_ms: wallMs } }
}

/** Why a submission earned what it did, in words. */
export const reasonOf = ({ details }: Scored): string => Details.parse(details).reason

/** What each credit added to the weighted sum: the mean of both hidden runs. */
export function breakdownOf(details: JsonObject): JsonObject {
  const { runs } = Details.parse(details)
  const names = Object.keys(runs[0]?.credits ?? {})
  const mean = (name: string) =>
    runs.reduce((sum, { credits }) => sum + (credits[name]?.value ?? 0) * (credits[name]?.weight ?? 0), 0) / runs.length
  return Object.fromEntries(names.map(name => [name, rounded(mean(name), 4)]))
}

const finiteOrNull = (value: number | null): number | null => (value === null || !Number.isFinite(value) ? null : value)

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))
