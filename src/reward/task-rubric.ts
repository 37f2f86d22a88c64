/**
 * The reward of a repaired training script: a formula over what a trusted process measured.
 *
 * The formula of a task is data, so that description, script and reward come
 * from one record. It is built of ramps and products that never fall when a
 * measure improves, so a better repair never earns less.
 */

/** What the evaluation measured: a number, one number per epoch or image or tag, or null where it was not finite. */
export type Measure = number | readonly (number | null)[] | null

/** A formula over measures. Lists are worked on element by element; a number counts for every element. */
export type RubricNode =
  | { readonly measure: string }
  /** 3t² − 2t³ of the way from `from` to `to`, 0 before it and 1 past it; `to` may be the smaller one. Null earns 0. */
  | { readonly ramp: RubricNode; readonly from: number; readonly to: number }
  | { readonly product: readonly RubricNode[] }
  | { readonly sum: readonly { readonly weight: number; readonly of: RubricNode }[] }
  /** The mean of a list. */
  | { readonly mean: RubricNode }
  /** The lowest value that any of the hidden runs has. */
  | { readonly worse: RubricNode }

/** One thing that is paid for; `shows` says in words what it measures. */
export type RubricCredit = { readonly weight: number; readonly value: RubricNode; readonly shows: string }

/** How a task is judged: two gates that let through, and credits that pay, whose weights sum to 1. */
export type TaskRubric = {
  readonly moved: RubricNode
  readonly learned: RubricNode
  readonly credits: Readonly<Record<string, RubricCredit>>
}

/** What is known of one hidden run; `why` says what made it invalid. */
export type RunEvidence = {
  readonly valid: boolean
  readonly why: string
  readonly measures: Readonly<Record<string, Measure>>
}

/** A credit as it was judged; `measured` has the measures that its formula uses, to four digits. */
export type JudgedCredit = { value: number; weight: number; shows: string; measured: Record<string, Measure> }

export type JudgedRun = {
  score: number
  valid: boolean
  why: string
  moved: number
  learned: number
  /** The measures that the two gates use, to four digits. */
  measured: Record<string, Measure>
  credits: Record<string, JudgedCredit>
}

/** `score` is in [0.01, 0.99] and has four decimals; `reason` says in words what was lost where. */
export type TaskScore = { score: number; runs: JudgedRun[]; reason: string }

const FLOOR = 0.01
const RANGE = 0.98
/** Share of the reward that moving the weights earns at most, once something was learned. */
const MOVED_SHARE = 0.04
/** What costs less than this is not worth a word in the reason. */
const WORTH_TELLING = 0.005

/**
 * Judge a submission by its hidden runs: the mean of 0.01 + 0.98 · valid · learned · (0.04 · moved + 0.96 · Σ weight · value).
 *
 * @throws {RangeError} If there is no run, or if a valid run lacks a measure or has lists where the rubric needs numbers:
 *   then rubric and evaluation of the task disagree, which says nothing about the submission.
 */
export function judgeRepair(rubric: TaskRubric, runs: readonly RunEvidence[]): TaskScore {
  if (runs.length === 0) throw new RangeError('a repair is judged by one run at least')
  const judged = runs.map(run => judgeRun(rubric, run, runs))
  const score = toDecimals(judged.reduce((sum, run) => sum + run.score, 0) / judged.length)
  return { score, runs: judged, reason: describe(score, judged) }
}

function judgeRun(rubric: TaskRubric, run: RunEvidence, runs: readonly RunEvidence[]): JudgedRun {
  const judge = (node: RubricNode, place: string) => (run.valid ? inUnit(evaluate(node, run, runs), place) : 0)
  const moved = judge(rubric.moved, 'moved')
  const learned = judge(rubric.learned, 'learned')
  const credits = Object.entries(rubric.credits).map(([name, { weight, value, shows }]): [string, JudgedCredit] => {
    return [name, { value: judge(value, name), weight, shows, measured: measuredBy([value], run) }]
  })
  const earned = credits.reduce((sum, [, { value, weight }]) => sum + value * weight, 0)
  const share = learned * (MOVED_SHARE * moved + (1 - MOVED_SHARE) * Math.min(1, earned))
  return {
    score: FLOOR + RANGE * share,
    valid: run.valid,
    why: run.why,
    moved,
    learned,
    measured: measuredBy([rubric.moved, rubric.learned], run),
    credits: Object.fromEntries(credits),
  }
}

function evaluate(node: RubricNode, run: RunEvidence, runs: readonly RunEvidence[]): Measure {
  if ('measure' in node) return lookUp(node.measure, run)
  if ('ramp' in node) return map(evaluate(node.ramp, run, runs), value => smoothstep(value, node.from, node.to))
  if ('mean' in node) return meanOf(evaluate(node.mean, run, runs))
  if ('worse' in node) {
    return combine(
      runs.map(other => evaluate(node.worse, other, runs)),
      values => (values.some(value => value === null) ? null : Math.min(...values.map(zeroIfNull))),
    )
  }
  if ('product' in node) {
    return combine(
      node.product.map(factor => evaluate(factor, run, runs)),
      values => values.reduce<number>((product, value) => product * zeroIfNull(value), 1),
    )
  }
  return combine(
    node.sum.map(({ weight, of }) => map(evaluate(of, run, runs), value => weight * zeroIfNull(value))),
    values => values.reduce<number>((sum, value) => sum + zeroIfNull(value), 0),
  )
}

function lookUp(name: string, run: RunEvidence): Measure {
  // Nothing was measured in an invalid run, and nothing is what it earns.
  if (!run.valid) return null
  const value = run.measures[name]
  if (value === undefined) throw new RangeError(`the evaluation measured no ${name}`)
  return map(value, number => number)
}

/** 3t² − 2t³, the cubic Hermite step: rises everywhere in between and is flat at both ends. */
function smoothstep(value: number | null, from: number, to: number): number {
  if (value === null) return 0
  const t = Math.min(1, Math.max(0, (value - from) / (to - from)))
  return t * t * (3 - 2 * t)
}

function meanOf(value: Measure): number {
  if (typeof value === 'number' || value === null) return zeroIfNull(value)
  return value.length === 0 ? 0 : value.reduce<number>((sum, item) => sum + zeroIfNull(item), 0) / value.length
}

function map(value: Measure, change: (value: number | null) => number | null): Measure {
  return typeof value === 'number' || value === null ? change(finite(value)) : value.map(item => change(finite(item)))
}

/** Work on several values at once, element by element where there are lists. */
function combine(values: readonly Measure[], work: (values: (number | null)[]) => number | null): Measure {
  const lengths = new Set(values.flatMap(value => (typeof value === 'number' || value === null ? [] : [value.length])))
  if (lengths.size > 1) throw new RangeError(`lists of ${[...lengths].join(' and ')} numbers do not fit together`)
  const [length] = lengths
  const at = (value: Measure, index: number) =>
    typeof value === 'number' || value === null ? value : (value[index] ?? null)
  if (length === undefined) return work(values.map(value => at(value, 0)))
  return Array.from({ length }, (_, index) => work(values.map(value => at(value, index))))
}

function inUnit(value: Measure, place: string): number {
  if (typeof value !== 'number' && value !== null) {
    throw new RangeError(`${place} came to a list of ${value.length} numbers; its formula lacks a mean`)
  }
  return Math.min(1, Math.max(0, zeroIfNull(value)))
}

const finite = (value: number | null): number | null => (value === null || Number.isFinite(value) ? value : null)
const zeroIfNull = (value: number | null): number => value ?? 0
const toDecimals = (value: number): number => Math.round(value * 1e4) / 1e4
const toDigits = (value: number | null): number | null => (value === null ? null : Number(value.toPrecision(4)))

function measuredBy(nodes: readonly RubricNode[], { measures }: RunEvidence): Record<string, Measure> {
  const names = new Set(nodes.flatMap(measureNames))
  const known = [...names].flatMap(name => {
    const value = measures[name]
    return value === undefined ? [] : [[name, map(value, toDigits)] as const]
  })
  return Object.fromEntries(known)
}

/** The names of all measures that a formula uses, in the order of the text. */
export function measureNames(node: RubricNode): string[] {
  if ('measure' in node) return [node.measure]
  if ('ramp' in node) return measureNames(node.ramp)
  if ('mean' in node) return measureNames(node.mean)
  if ('worse' in node) return measureNames(node.worse)
  return 'product' in node ? node.product.flatMap(measureNames) : node.sum.flatMap(({ of }) => measureNames(of))
}

function describe(score: number, runs: readonly JudgedRun[]): string {
  const words = runs.map(describeRun)
  const alike = new Set(words).size === 1
  const each = alike
    ? [`on every hidden run: ${words[0]}`]
    : words.map((word, index) => `hidden run ${index + 1} has ${(runs[index]?.score ?? 0).toFixed(4)}: ${word}`)
  return `${score.toFixed(4)} is the mean of ${runs.length} hidden runs; ${each.join('; ')}.`
}

function describeRun(run: JudgedRun): string {
  if (!run.valid) return run.why === '' ? 'not valid' : `not valid, because ${run.why}`
  if (run.learned === 0) return 'the exported model has learned nothing that the hidden data shows'
  const losses = Object.entries(run.credits)
    .map(([name, credit]) => ({ name, ...credit, lost: credit.weight * (1 - credit.value) }))
    .filter(({ lost }) => lost >= WORTH_TELLING)
    .sort((one, other) => other.lost - one.lost)
    .map(({ name, value, weight, shows }) => `${name} has ${value.toFixed(2)} of 1 at weight ${weight} (${shows})`)
  const gate = run.learned < 1 ? [`what was learned lets ${run.learned.toFixed(2)} of the rest count`] : []
  return [...gate, ...losses].join(', ') || 'full credit'
}
