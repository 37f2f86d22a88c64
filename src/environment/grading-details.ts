/** A verdict as an observation shows it: every number that led to the score, none of the hidden data. */

import type { JudgedRun, Measure, TaskScore } from '../reward/task-rubric.ts'
import type { JsonObject, JsonValue } from './environment.ts'

const FORMULA = '0.01 + 0.98 * valid * learned * (0.04 * moved + 0.96 * sum of weight * value over the credits)'

/** What led to a score, as JSON: `score`, `reason`, `formula` and the hidden `runs` with their gates and credits. */
export function explainGrade({ score, reason, runs }: TaskScore): JsonObject {
  return { score, reason, formula: FORMULA, runs: runs.map(explainRun) }
}

function explainRun({ score, valid, why, moved, learned, measured, credits }: JudgedRun): JsonObject {
  const each = Object.entries(credits).map(([name, { value, weight, shows, measured }]): [string, JsonValue] => {
    return [name, { value: rounded(value), weight, shows, measured: plain(measured) }]
  })
  return {
    score: rounded(score),
    valid,
    why,
    moved: rounded(moved),
    learned: rounded(learned),
    measured: plain(measured),
    credits: Object.fromEntries(each),
  }
}

const rounded = (value: number): number => Number(value.toFixed(4))

function plain(measured: Record<string, Measure>): JsonObject {
  const entries = Object.entries(measured).map(([name, value]): [string, JsonValue] => {
    return [name, typeof value === 'number' || value === null ? value : [...value]]
  })
  return Object.fromEntries(entries)
}
