/** `repairs.json` of a task: its faults, and scripts made by taking some of them away. It never leaves the repository. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Task } from '../../src/environment/task-folder.ts'
import { tasksFolder } from '../../src/setup/paths.ts'

const lines = z.array(z.string().refine(line => !line.includes('\n'), 'expected one line'))
const Edit = z.strictObject({ find: lines.min(1), replace: lines })
type Edit = z.infer<typeof Edit>

const Repairs = z.strictObject({
  faults: z
    .record(z.string(), z.array(Edit).min(1))
    .refine(faults => Object.keys(faults).length > 0, 'expected a fault'),
  variants: z.record(
    z.string(),
    z.strictObject({
      kind: z.enum(['partial', 'no_effect', 'reference']),
      faults: z.array(z.string()),
      edits: z.array(Edit),
    }),
  ),
})

/**
 * A script to grade. `broken` and `reference` have none and all of the faults repaired, `subset` some of them;
 * the others are a task's own variants. `fixed` names the faults that are repaired.
 */
export type Variant = {
  name: string
  kind: 'broken' | 'subset' | 'partial' | 'no_effect' | 'reference'
  fixed: readonly string[]
  code: string
}

/**
 * Every script that the repairs of a task make: the whole lattice of its faults, and its variants.
 *
 * @throws {Error} Naming the edit that doesn't fit the broken script, or the field that is malformed.
 */
export function variantsOf(task: Task): Variant[] {
  const path = join(tasksFolder, task.id, 'repairs.json')
  const parsed = Repairs.safeParse(JSON.parse(readFileSync(path, 'utf8')))
  if (!parsed.success) throw new Error(`${path}: ${z.prettifyError(parsed.error)}`)
  const { faults, variants } = parsed.data
  const editsOf = (names: readonly string[], where: string) =>
    names.flatMap(name => {
      const edits = faults[name]
      if (edits === undefined) throw new Error(`${path}: ${where}: there is no fault ${name}`)
      return edits
    })
  const all = Object.keys(faults)
  const lattice = subsets(all).map(fixed => ({
    name: nameOf(fixed, all),
    kind: kindOf(fixed, all),
    fixed,
    code: applyEdits(task.brokenCode, editsOf(fixed, 'faults'), `${path}: faults`),
  }))
  const own = Object.entries(variants).map(([name, { kind, faults: fixed, edits }]) => {
    const where = `${path}: variants.${name}`
    const base = applyEdits(task.brokenCode, editsOf(fixed, where), where)
    return { name, kind, fixed, code: applyEdits(base, edits, where) }
  })
  return [...lattice, ...own]
}

/** The broken script with every subset of its faults repaired. */
export function latticeOf(variants: readonly Variant[]): Variant[] {
  return variants.filter(({ kind, name }) => kind === 'broken' || kind === 'subset' || name === 'reference')
}

/** Every pair of lattice members of which the second has one fault less. */
export function edgesOf(variants: readonly Variant[]): [Variant, Variant][] {
  const lattice = latticeOf(variants)
  return lattice.flatMap(lower =>
    lattice
      .filter(({ fixed }) => fixed.length === lower.fixed.length + 1 && lower.fixed.every(name => fixed.includes(name)))
      .map((upper): [Variant, Variant] => [lower, upper]),
  )
}

/**
 * Replace blocks of lines. Each `find` occurs exactly once in the text, and no two overlap.
 *
 * @throws {Error} Naming the edit that doesn't fit.
 */
export function applyEdits(text: string, edits: readonly Edit[], where: string): string {
  const rows = text.split('\n')
  const placed = edits.map(edit => ({ ...edit, at: placeOf(rows, edit.find, where) })).sort((a, b) => a.at - b.at)
  const result: string[] = []
  let next = 0
  for (const { find, replace, at } of placed) {
    if (at < next) throw new Error(`${where}: two edits change the line ${JSON.stringify(find[0])}`)
    result.push(...rows.slice(next, at), ...replace)
    next = at + find.length
  }
  return [...result, ...rows.slice(next)].join('\n')
}

function placeOf(rows: readonly string[], find: readonly string[], where: string): number {
  const places = rows.flatMap((_, at) => (find.every((line, offset) => rows[at + offset] === line) ? [at] : []))
  const [place] = places
  if (place === undefined || places.length > 1) {
    throw new Error(`${where}: expected once in the script, found ${places.length} times: ${JSON.stringify(find)}`)
  }
  return place
}

function subsets(names: readonly string[]): string[][] {
  const sets: string[][] = [[]]
  for (const name of names) sets.push(...sets.map(set => [...set, name]))
  return sets
}

const kindOf = (fixed: readonly string[], all: readonly string[]): Variant['kind'] =>
  fixed.length === 0 ? 'broken' : fixed.length === all.length ? 'reference' : 'subset'

function nameOf(fixed: readonly string[], all: readonly string[]): string {
  const kind = kindOf(fixed, all)
  return kind === 'subset' ? `fix:${fixed.join('+')}` : kind
}
