/** Task folders → checked `Task` values. A task is a folder with a `task.json`; `python/tasks/README.md` says what is in it. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { messageOf, ServiceError } from '../errors.ts'
import type { RubricNode, TaskRubric } from '../reward/task-rubric.ts'

/** Clients cut what they send here, so a script has to be shorter. */
export const MAX_SCRIPT_CHARS = 8_000

/** A training script with planted faults, what is said about it, and how its repair is judged. */
export type Task = {
  readonly id: string
  readonly name: string
  readonly difficulty: 'easy' | 'medium' | 'hard'
  /** Symptoms and contract, in Markdown: what an agent is told. */
  readonly description: string
  /** The script that an episode starts with. */
  readonly brokenCode: string
  /** Names of the files that a run leaves for the evaluation. */
  readonly outputs: readonly string[]
  readonly rubric: TaskRubric
}

const SUM_TOLERANCE = 1e-9

const name = z.string().regex(/^[a-z][a-z0-9_]*$/, 'expected a name in snake_case')
const fileName = z.string().regex(/^[A-Za-z0-9][\w.-]*$/, 'expected the plain name of a file')
const weight = z.number().positive()

/** The kinds of node by the key that tells them apart. */
const NODES: Record<string, z.ZodType<RubricNode>> = {
  measure: z.strictObject({ measure: name }),
  ramp: z
    .strictObject({ ramp: z.lazy(() => node), from: z.number(), to: z.number() })
    .refine(({ from, to }) => from !== to, { message: 'expected from and to to differ', path: ['to'] }),
  product: z.strictObject({ product: z.array(z.lazy(() => node)).min(1) }),
  sum: z
    .strictObject({ sum: z.array(z.strictObject({ weight, of: z.lazy(() => node) })).min(1) })
    .refine(({ sum }) => total(sum) <= 1 + SUM_TOLERANCE, {
      message: 'expected weights that sum to at most 1',
      path: ['sum'],
    }),
  mean: z.strictObject({ mean: z.lazy(() => node) }),
  worse: z.strictObject({ worse: z.lazy(() => node) }),
}

// A union would answer "invalid input" at the root of the formula; asking for the kind first names the faulty field.
const node: z.ZodType<RubricNode> = z.unknown().transform((value, context) => {
  const kind = Object.keys(NODES).find(key => typeof value === 'object' && value !== null && key in value)
  const parsed = NODES[kind ?? '']?.safeParse(value)
  if (parsed?.success) return parsed.data
  const kinds = Object.keys(NODES).join(', ')
  const issues = parsed?.error.issues ?? [{ path: [], message: `expected a formula: an object with one of ${kinds}` }]
  for (const { path, message } of issues) context.issues.push({ code: 'custom', path, message, input: value })
  return z.NEVER
})

const total = (parts: Iterable<{ weight: number }>): number => {
  let sum = 0
  for (const part of parts) sum += part.weight
  return sum
}

/** What `task.json` holds. */
export const TaskRecord = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]*$/, 'expected lower-case letters, digits, _ and -'),
  name: z.string().min(1),
  difficulty: z.enum(['easy', 'medium', 'hard']),
  outputs: z
    .array(fileName)
    .min(1)
    .refine(names => new Set(names).size === names.length, 'expected each name once'),
  rubric: z.strictObject({
    moved: node,
    learned: node,
    credits: z
      .record(name, z.strictObject({ weight, value: node, shows: z.string().min(1) }))
      .refine(
        credits => Math.abs(total(Object.values(credits)) - 1) <= SUM_TOLERANCE,
        'expected weights that sum to 1',
      ),
  }),
})

/**
 * Read every task below a folder, in the order of their ids; numbers in ids count as numbers.
 *
 * @throws {ServiceError} `invalid_config` naming the file, the field and what was expected.
 */
export function loadTasks(folder: string): Task[] {
  const folders = readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isDirectory() && existsSync(join(folder, entry.name, 'task.json')))
    .map(entry => entry.name)
  if (folders.length === 0) throw new ServiceError('invalid_config', `${folder}: expected a folder with a task.json`)
  return folders
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
    .map(id => loadTask(join(folder, id), id))
}

function loadTask(folder: string, folderName: string): Task {
  const path = join(folder, 'task.json')
  const parsed = TaskRecord.safeParse(parseJson(path))
  if (!parsed.success) {
    const lines = parsed.error.issues.map(issue => `${issue.path.join('.') || 'the record'}: ${issue.message}`)
    throw new ServiceError('invalid_config', `${path}: ${lines.join('; ')}`)
  }
  const { id, rubric, ...record } = parsed.data
  if (id !== folderName) {
    throw new ServiceError('invalid_config', `${path}: id: expected the name of the folder, ${folderName}, got ${id}`)
  }
  const brokenCode = readText(join(folder, 'broken.py'))
  if (brokenCode.length >= MAX_SCRIPT_CHARS) {
    const why = `expected fewer than ${MAX_SCRIPT_CHARS} characters, got ${brokenCode.length}`
    throw new ServiceError('invalid_config', `${join(folder, 'broken.py')}: ${why}`)
  }
  readText(join(folder, 'evaluation.py'))
  return { id, ...record, description: readText(join(folder, 'description.md')).trim(), brokenCode, rubric }
}

function readText(path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ServiceError('invalid_config', `${path}: expected a file: ${messageOf(cause)}`, { cause })
  }
  if (text.trim() === '') throw new ServiceError('invalid_config', `${path}: expected some text, got none`)
  return text
}

function parseJson(path: string): unknown {
  try {
    return JSON.parse(readText(path))
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause
    throw new ServiceError('invalid_config', `${path}: expected JSON: ${messageOf(cause)}`, { cause })
  }
}
