/** From zod issues to the error items that OpenEnv clients know from pydantic. */

import type { z } from 'zod'
import { isJsonObject } from './json.ts'

export type ErrorItem = {
  type: string
  loc: (string | number)[]
  msg: string
  input: unknown
  ctx?: Record<string, unknown>
  url?: string
}

export type Checked<T> = { ok: true; value: T } | { ok: false; items: ErrorItem[] }

/** `loc` goes before every path; `url` adds the key that marks items about the content of an action. */
export type CheckOptions = { loc?: (string | number)[]; url?: boolean }

const ERROR_PAGE = 'https://errors.pydantic.dev/2.12/v/'
/** Longest text or JSON repeated in an item's `input`, in UTF-16 units: a refused 100 MB body isn't sent back. */
const ECHO_LIMIT = 16_384

/** Check a value from the wire against a schema. Never throws. */
export function check<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  { loc = [], url = false }: CheckOptions = {},
): Checked<z.output<Schema>> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return { ok: true, value: parsed.data }
  return { ok: false, items: parsed.error.issues.flatMap(issue => toItems(issue, input, loc, url)) }
}

/** One error item, with its `input` bounded. */
export function errorItem(
  type: string,
  loc: (string | number)[],
  msg: string,
  input: unknown,
  ctx?: Record<string, unknown>,
): ErrorItem {
  const item: ErrorItem = { type, loc, msg, input: bounded(input) }
  if (ctx !== undefined) item.ctx = ctx
  return item
}

function toItems(issue: z.core.$ZodIssue, root: unknown, prefix: (string | number)[], url: boolean): ErrorItem[] {
  const path = issue.path.map(key => (typeof key === 'symbol' ? String(key) : key))
  const { present, value, parent } = resolve(root, path)
  const build = (type: string, tail: (string | number)[], msg: string, input: unknown, ctx?: ErrorItem['ctx']) => {
    const item = errorItem(type, [...prefix, ...tail], msg, input, ctx)
    return url ? { ...item, url: ERROR_PAGE + type } : item
  }
  if (!present) return [build('missing', path, 'Field required', parent)]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(key =>
      build('extra_forbidden', [...path, key], 'Extra inputs are not permitted', own(value, key)),
    )
  }
  const { type, msg, ctx } = describe(issue, path.length === 0)
  return [build(type, path, msg, value, ctx)]
}

type Description = { type: string; msg: string; ctx?: Record<string, unknown> | undefined }

const TYPE_FAULTS: Record<string, Description> = {
  string: { type: 'string_type', msg: 'Input should be a valid string' },
  boolean: { type: 'bool_type', msg: 'Input should be a valid boolean' },
  number: { type: 'float_type', msg: 'Input should be a valid number' },
  int: { type: 'int_type', msg: 'Input should be a valid integer' },
  array: { type: 'list_type', msg: 'Input should be a valid list' },
  record: { type: 'dict_type', msg: 'Input should be a valid dictionary' },
  object: { type: 'dict_type', msg: 'Input should be a valid dictionary' },
}

function describe(issue: z.core.$ZodIssue, isRoot: boolean): Description {
  switch (issue.code) {
    case 'invalid_type': {
      if (isRoot && issue.expected === 'object') {
        return {
          type: 'model_attributes_type',
          msg: 'Input should be a valid dictionary or object to extract fields from',
        }
      }
      return TYPE_FAULTS[issue.expected] ?? { type: 'value_error', msg: issue.message }
    }
    case 'too_small':
    case 'too_big':
      return describeBound(issue)
    case 'invalid_value': {
      const expected = listWords(issue.values.map(value => (typeof value === 'string' ? `'${value}'` : String(value))))
      return { type: 'literal_error', msg: `Input should be ${expected}`, ctx: { expected } }
    }
    case 'custom': {
      const { type, ctx } = issue.params ?? {}
      if (typeof type !== 'string') return { type: 'value_error', msg: issue.message }
      return { type, msg: issue.message, ctx: isJsonObject(ctx) ? ctx : undefined }
    }
    default:
      return { type: 'value_error', msg: issue.message }
  }
}

function describeBound(issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig): Description {
  const isLow = issue.code === 'too_small'
  const bound = Number(isLow ? issue.minimum : issue.maximum)
  if (issue.origin === 'string') {
    return isLow
      ? {
          type: 'string_too_short',
          msg: `String should have at least ${bound} character${bound === 1 ? '' : 's'}`,
          ctx: { min_length: bound },
        }
      : { type: 'string_too_long', msg: `String should have at most ${bound} characters`, ctx: { max_length: bound } }
  }
  if (issue.origin === 'array') {
    return isLow
      ? { type: 'too_short', msg: `List should have at least ${bound} items`, ctx: { min_length: bound } }
      : { type: 'too_long', msg: `List should have at most ${bound} items`, ctx: { max_length: bound } }
  }
  const side = isLow ? 'greater' : 'less'
  return issue.inclusive
    ? {
        type: `${side}_than_equal`,
        msg: `Input should be ${side} than or equal to ${bound}`,
        ctx: { [isLow ? 'ge' : 'le']: bound },
      }
    : { type: `${side}_than`, msg: `Input should be ${side} than ${bound}`, ctx: { [isLow ? 'gt' : 'lt']: bound } }
}

/** `'a', 'b' or 'c'`. */
function listWords(words: string[]): string {
  const last = words.at(-1) ?? ''
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} or ${last}`
}

/** Walk own keys only, so that a path named `__proto__` can't reach a prototype. */
function resolve(root: unknown, path: (string | number)[]): { present: boolean; value: unknown; parent: unknown } {
  let parent: unknown = null
  let value = root
  for (const key of path) {
    parent = value
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) {
      return { present: false, value: undefined, parent }
    }
    value = own(value, key)
  }
  return { present: true, value, parent }
}

function own(holder: unknown, key: string | number): unknown {
  if (typeof holder !== 'object' || holder === null) return undefined
  return Object.getOwnPropertyDescriptor(holder, key)?.value
}

/** The value itself while it is small; a short text in its place when it is not. */
function bounded(input: unknown): unknown {
  if (input === undefined) return null
  if (typeof input === 'string') {
    return input.length <= ECHO_LIMIT ? input : `${input.slice(0, ECHO_LIMIT)}... (${input.length} characters)`
  }
  if (typeof input !== 'object' || input === null) return input
  return weighs(input, ECHO_LIMIT) > 0
    ? input
    : `... (${Array.isArray(input) ? 'array' : 'object'} too large to repeat)`
}

/** What is left of `budget` after counting a value's text and members; counting stops below zero. */
function weighs(value: unknown, budget: number): number {
  if (typeof value === 'string') return budget - value.length
  if (typeof value !== 'object' || value === null) return budget - 1
  let left = budget
  for (const [key, item] of Object.entries(value)) {
    left = weighs(item, left - key.length - 1)
    if (left <= 0) break
  }
  return left
}
