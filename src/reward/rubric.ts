/**
 * Rubrics turn evidence into a score, and combine.
 *
 * Pure: no clock, no I/O, no randomness. The same evidence always gives the
 * same score, so a reward can be computed again from a written trajectory.
 */

/** A value in [0, 1] and the words that explain it to whoever reads the trajectory. */
export type Score = { readonly value: number; readonly reason: string }

/** Judges one kind of evidence. */
export type Rubric<Evidence> = (evidence: Evidence) => Score

/** One rubric of a weighted mean; weights are relative and need not sum to 1. */
export type WeightedPart<Evidence> = { rubric: Rubric<Evidence>; weight: number }

/**
 * Make a score whose value is certainly in [0, 1].
 *
 * @param value Clamped to [0, 1]. NaN counts as 0, because evidence that can't be measured earns nothing.
 */
export function score(value: number, reason: string): Score {
  if (Number.isNaN(value)) return { value: 0, reason: `not a number: ${reason}` }
  return { value: Math.min(1, Math.max(0, value)), reason }
}

/**
 * Combine rubrics into their weighted mean.
 *
 * @param parts Each rubric under the name that its share of the reason carries.
 * @throws {RangeError} If a weight is negative or not finite, or if all are 0.
 */
export function weighted<Evidence>(parts: Record<string, WeightedPart<Evidence>>): Rubric<Evidence> {
  const entries = Object.entries(parts)
  for (const [name, { weight }] of entries) {
    if (!(weight >= 0 && Number.isFinite(weight))) throw new RangeError(`weight of ${name} is ${weight}`)
  }
  const total = entries.reduce((sum, [, part]) => sum + part.weight, 0)
  if (total === 0) throw new RangeError('the weights sum to 0')
  return evidence => {
    const scores = entries.map(([name, { rubric, weight }]) => ({ name, weight, ...rubric(evidence) }))
    return score(
      scores.reduce((sum, part) => sum + part.value * part.weight, 0) / total,
      scores.map(part => `${part.name} ${part.value.toFixed(2)}: ${part.reason}`).join('; '),
    )
  }
}

/**
 * Let a rubric count only when another one is satisfied.
 *
 * @param gate Asked first; below `threshold` the score is 0 with the gate's reason.
 * @param threshold Lowest value of the gate that lets `rubric` decide, in [0, 1].
 */
export function gated<Evidence>(gate: Rubric<Evidence>, rubric: Rubric<Evidence>, threshold = 1): Rubric<Evidence> {
  return evidence => {
    const opened = gate(evidence)
    return opened.value >= threshold ? rubric(evidence) : score(0, opened.reason)
  }
}

/**
 * Ask rubrics in order and stop at the first that gives 0; otherwise the last one's score stands.
 *
 * Cheap checks go first: a rubric after a failed one is never asked.
 */
export function sequential<Evidence>(first: Rubric<Evidence>, ...rest: readonly Rubric<Evidence>[]): Rubric<Evidence> {
  return evidence => {
    let current = first(evidence)
    for (const rubric of rest) {
      if (current.value === 0) return current
      current = rubric(evidence)
    }
    return current
  }
}

/** Use a rubric on wider evidence, by naming the part of it that the rubric judges. */
export function focused<Whole, Part>(select: (whole: Whole) => Part, rubric: Rubric<Part>): Rubric<Whole> {
  return whole => rubric(select(whole))
}
