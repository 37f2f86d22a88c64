/** Judges every script that the repairs of a task make, and says whether the rewards are as promised. */

import type { Grader } from '../../src/environment/grader.ts'
import type { Task } from '../../src/environment/task-folder.ts'
import { edgesOf, type Variant } from './repairs.ts'

/** The rewards of one script over several seeds. */
export type Calibrated = Variant & { scores: number[]; mean: number; min: number; max: number }

/** What holds for every task. */
export const BOUNDS = Object.freeze({
  /** No seed gives the broken script more. */
  broken: 0.25,
  /** Every seed gives a whole repair this much. */
  reference: 0.9,
  /** A change without effect stays this close to the broken script in mean. */
  noEffect: 0.02,
})
/** What is aimed at, and told when it is missed. */
const AIMS = { broken: 0.1, reference: 0.95, edge: 0.03 }
const BUDGET_MS = 600_000

/** Judge variants of a task on these seeds. @throws {ServiceError} If the service failed to judge one. */
export async function calibrate(
  grader: Grader,
  task: Task,
  variants: readonly Variant[],
  seeds: readonly number[],
): Promise<Calibrated[]> {
  const jobs = variants.map(async variant => {
    const judge = (seed: number) => grader.judge({ task, seed, code: variant.code, budgetMs: BUDGET_MS })
    const scores = (await Promise.all(seeds.map(judge))).map(({ score }) => score)
    return { ...variant, scores, mean: meanOf(scores), min: Math.min(...scores), max: Math.max(...scores) }
  })
  return await Promise.all(jobs)
}

/** What is not as promised, one sentence each. */
export function objectionsTo(results: readonly Calibrated[]): string[] {
  const { broken, reference } = endsOf(results)
  const objections = results.flatMap(({ name, kind, mean, min, max }) => {
    const is = `${name} has ${mean.toFixed(4)} (${min.toFixed(4)} to ${max.toFixed(4)})`
    if (kind === 'broken') return max <= BOUNDS.broken ? [] : [`${is}, above ${BOUNDS.broken}`]
    if (kind === 'reference') return min >= BOUNDS.reference ? [] : [`${is}, below ${BOUNDS.reference}`]
    if (kind === 'no_effect') {
      return Math.abs(mean - broken.mean) <= BOUNDS.noEffect ? [] : [`${is}, not that of the broken script`]
    }
    return mean > broken.mean && mean < reference.mean ? [] : [`${is}, not between the broken script and the reference`]
  })
  const flat = edges(results).filter(({ rise }) => rise <= 0)
  return [...objections, ...flat.map(({ from, to, rise }) => `${from} to ${to} rises by ${rise.toFixed(4)}`)]
}

/** What is as promised and yet less than aimed at, one sentence each. */
export function remarksOn(results: readonly Calibrated[]): string[] {
  const { broken, reference } = endsOf(results)
  const remarks: string[] = []
  if (broken.max > AIMS.broken) remarks.push(`broken reaches ${broken.max.toFixed(4)}`)
  if (reference.min < AIMS.reference) remarks.push(`reference falls to ${reference.min.toFixed(4)}`)
  const flat = edges(results).filter(({ rise }) => rise < AIMS.edge)
  return [...remarks, ...flat.map(({ from, to, rise }) => `${from} to ${to} rises by ${rise.toFixed(4)} only`)]
}

function edges(results: readonly Calibrated[]): { from: string; to: string; rise: number }[] {
  const meanBy = new Map(results.map(({ name, mean }) => [name, mean]))
  const rise = (from: string, to: string) => (meanBy.get(to) ?? Number.NaN) - (meanBy.get(from) ?? Number.NaN)
  return edgesOf(results).map(([{ name: from }, { name: to }]) => ({ from, to, rise: rise(from, to) }))
}

function endsOf(results: readonly Calibrated[]): { broken: Calibrated; reference: Calibrated } {
  const [broken, reference] = ['broken', 'reference'].map(wanted => results.find(({ name }) => name === wanted))
  if (broken === undefined || reference === undefined) throw new Error('a calibration needs both ends of the lattice')
  return { broken, reference }
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
