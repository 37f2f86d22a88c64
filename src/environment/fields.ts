/**
 * Field kinds for action and reset schemas, as lax as the Python servers are.
 *
 * Clients written for pydantic send `"7"`, `1.0` or `true` where an integer is
 * declared and `"yes"` or `1` where a boolean is. These kinds accept exactly
 * that, and refuse the rest with the error `type` such clients know. In JSON
 * Schema they show as plain `integer`, `number`, `boolean` and `string`.
 *
 * Compose with zod as usual: `laxInt({ min: 1 }).nullable().default(null)`.
 */

import { z } from 'zod'

/** What a refused value is called on the wire; `src/api/validation.ts` reads it back. */
export type FieldFault = { type: string; message: string; ctx?: Record<string, string | number> }

const INT = 'Input should be a valid integer'
const NUMBER = 'Input should be a valid number'
const BOOLEAN = 'Input should be a valid boolean'
const FAULTS = {
  int_type: INT,
  int_parsing: `${INT}, unable to parse string as an integer`,
  int_from_float: `${INT}, got a number with a fractional part`,
  int_parsing_size: `Unable to parse input as an integer, its size should be at most ${Number.MAX_SAFE_INTEGER}`,
  float_type: NUMBER,
  float_parsing: `${NUMBER}, unable to parse string as a number`,
  finite_number: 'Input should be a finite number',
  bool_type: BOOLEAN,
  bool_parsing: `${BOOLEAN}, unable to interpret input`,
  string_type: 'Input should be a valid string',
} as const

const TRUE_WORDS = new Set(['1', 'on', 't', 'true', 'y', 'yes'])
const FALSE_WORDS = new Set(['0', 'off', 'f', 'false', 'n', 'no'])
const INT_TEXT = /^\s*[+-]?\d+(?:_\d+)*(?:\.0*)?\s*$/
const NUMBER_TEXT = /^\s*[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i

/** Reports one fault and yields the value that zod discards. */
type Refuse = (type: keyof typeof FAULTS) => never

/** Turn a coercion into a zod stage that reports its faults as custom issues. */
function coerced<Target extends z.ZodType>(coerce: (value: unknown, refuse: Refuse) => unknown, target: Target) {
  return z.preprocess((value, context) => {
    const refuse: Refuse = type => {
      context.issues.push({ code: 'custom', params: { type }, message: FAULTS[type], input: value })
      return z.NEVER
    }
    return coerce(value, refuse)
  }, target)
}

function toInteger(value: unknown, refuse: Refuse): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value !== 'number' && typeof value !== 'string') return refuse('int_type')
  if (typeof value === 'string' && !INT_TEXT.test(value)) return refuse('int_parsing')
  const number = typeof value === 'string' ? Number(value.replaceAll('_', '')) : value
  if (Number.isFinite(number) && !Number.isInteger(number)) return refuse('int_from_float')
  // Past 2^53 a JSON number has already lost digits: two seeds would silently become one.
  return Number.isSafeInteger(number) ? number : refuse('int_parsing_size')
}

function toNumber(value: unknown, refuse: Refuse): unknown {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value !== 'number' && typeof value !== 'string') return refuse('float_type')
  if (typeof value === 'string' && !NUMBER_TEXT.test(value)) return refuse('float_parsing')
  const number = typeof value === 'string' ? Number(value.replaceAll('_', '')) : value
  return Number.isFinite(number) ? number : refuse('finite_number')
}

function toBoolean(value: unknown, refuse: Refuse): unknown {
  if (typeof value === 'boolean') return value
  if (value === 0 || value === 1) return value === 1
  if (typeof value === 'number') return refuse(Number.isInteger(value) ? 'bool_parsing' : 'bool_type')
  if (typeof value !== 'string') return refuse('bool_type')
  const word = value.toLowerCase()
  return TRUE_WORDS.has(word) || (FALSE_WORDS.has(word) ? false : refuse('bool_parsing'))
}

/** Bounds of a number, inclusive except `above`. */
export type NumberBounds = { min?: number; max?: number; above?: number }

/** A whole number: also `7.0`, `"7"` and `true`. Refused past 2^53, where JSON numbers lose digits. */
export function laxInt({ min, max }: Pick<NumberBounds, 'min' | 'max'> = {}) {
  let target = z.int()
  if (min !== undefined) target = target.min(min)
  if (max !== undefined) target = target.max(max)
  return coerced(toInteger, target)
}

/** A finite number: also `"1.5"` and `true`. */
export function laxNumber({ min, max, above }: NumberBounds = {}) {
  let target = z.number()
  if (above !== undefined) target = target.gt(above)
  if (min !== undefined) target = target.min(min)
  if (max !== undefined) target = target.max(max)
  return coerced(toNumber, target)
}

/** A boolean: also 0 and 1, and yes/no, on/off, y/n, t/f, true/false in any case. */
export function laxBool() {
  return coerced(toBoolean, z.boolean())
}

/**
 * A string; never coerced from a number.
 *
 * @param maxChars Longest value accepted, in Unicode characters.
 */
export function text(maxChars?: number) {
  if (maxChars === undefined) return z.string()
  const fault: FieldFault = {
    type: 'string_too_long',
    message: `String should have at most ${maxChars} characters`,
    ctx: { max_length: maxChars },
  }
  return z
    .string()
    .refine(value => value.length <= maxChars || countsAtMost(value, maxChars), {
      message: fault.message,
      params: { type: fault.type, ctx: fault.ctx },
    })
    .meta({ maxLength: maxChars })
}

/** Whether a string holds at most `limit` code points, without reading past them. */
function countsAtMost(value: string, limit: number): boolean {
  let count = 0
  for (const _ of value) if (++count > limit) return false
  return true
}

/** Any JSON object, kept as it is. */
export function dict() {
  return z.record(z.string(), z.unknown())
}

/** `episode_id` of a reset, as every environment takes it: at most 255 characters, null for a random one. */
export function episodeIdField() {
  return text(255).nullish().describe('Id for the new episode; null or missing takes a random one.')
}

/**
 * `seed` of a reset, as every environment takes it.
 *
 * Negative seeds pass here because a WebSocket reset does not bound them; the
 * HTTP envelope refuses them before an environment sees them.
 */
export function seedField() {
  return laxInt().nullish().describe('Seed of the episode; null or missing leaves the generators unseeded.')
}

const SEEDS = 2 ** 32

/** Bring any whole number into [0, 2^32), which every generator takes; equal seeds stay equal, and even ones even. */
export function foldSeed(seed: number): number {
  return ((seed % SEEDS) + SEEDS) % SEEDS
}
