/** Which runs a submission is graded on: seeds that nobody can compute without the salt. */

import { createHmac } from 'node:crypto'

/** One run of a script, as `python/tasks/grading/run.py` takes it. */
export type GradingRun = { data_seed: number; init_seed: number; kind: 0 | 1 }

/** The two regimes that a task may tell apart. A submission is graded on one hidden run of each. */
export const KINDS = [0, 1] as const

/** The run that an episode's tools and a submission's shown output come from; its kind is that of the seed's parity. */
export function publicRun(salt: string, task: string, seed: number): GradingRun {
  return { ...seedsFor(salt, task, seed, 'public'), kind: Math.abs(seed % 2) === 1 ? 1 : 0 }
}

/** The runs that a submission is graded on: the same for the same salt, task and seed. */
export function hiddenRuns(salt: string, task: string, seed: number): GradingRun[] {
  return KINDS.map(kind => ({ ...seedsFor(salt, task, seed, `hidden ${kind}`), kind }))
}

function seedsFor(
  salt: string,
  task: string,
  seed: number,
  label: string,
): Pick<GradingRun, 'data_seed' | 'init_seed'> {
  const digest = createHmac('sha256', salt).update(`${task}|${seed}|${label}`).digest()
  return {
    // 53 bits: the whole numbers that a double, and so a JSON number, holds exactly.
    data_seed: Number(digest.readBigUInt64BE(0) >> 11n),
    init_seed: digest.readUInt32BE(8) >>> 1,
  }
}
