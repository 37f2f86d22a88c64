/**
 * Reads what instruments report. They run where agent code runs, so a report is hostile input:
 * it is bounded, checked, and can't set a field that another part of the observation owns.
 */

import { z } from 'zod'
import type { JsonObject, JsonValue } from './environment.ts'
import { MAX_EXPRESSIONS, MlDebugObservation, VariableState } from './ml-debug-schemas.ts'

const MAX_DEPTH = 12
/** Characters of names and texts, with one more for every value: ten steps of a model with a thousand parameters. */
const MAX_WEIGHT = 2 * 1024 * 1024
const MAX_ERROR_CHARS = 500
const MAX_PARAMETERS = 5_000
const MAX_LOSSES = 1_000
const EXTRA_NAME = /^[a-z][a-z0-9_]{0,63}$/

/** `fields` go into the observation. */
export type Report = { fields: JsonObject; error: string | null }

const text = (limit: number) => z.string().transform(value => value.slice(0, limit))
const number = z.number().nullable()
const flag = z.boolean().nullable()
const error = text(MAX_ERROR_CHARS).nullable()
const shape = z.array(z.number()).max(1000).nullable()

const TensorReport = z.looseObject({
  error,
  shape,
  dtype: text(200).nullable(),
  requires_grad: flag,
  grad_is_none: flag,
  min_val: number,
  max_val: number,
  mean_val: number,
  is_nan: flag,
  is_inf: flag,
})

const VariableReport = z.looseObject({
  results: z
    .record(z.string(), VariableState.extend({ repr: text(500), type: text(200), error: text(200).nullable(), shape }))
    .refine(results => Object.keys(results).length <= MAX_EXPRESSIONS),
})

const ProbeReport = z.looseObject({
  error,
  losses: z.array(number).max(MAX_LOSSES),
  grad_norms: z.record(z.string(), number).refine(norms => Object.keys(norms).length <= MAX_PARAMETERS),
  optimizer_param_count: z.int().nonnegative().nullable(),
  final_loss: number,
  loss_is_nan: flag.transform(value => value ?? false),
  loss_is_inf: flag.transform(value => value ?? false),
})

const OWNED = new Set([...Object.keys(MlDebugObservation.shape), 'reward', 'done', 'metadata'])

/** Whether an instrument may add a field of this name to an observation. */
const isFree = (name: string): boolean => EXTRA_NAME.test(name) && !OWNED.has(name)

/** Of `inspect_tensor`; null when it is no such report. */
export const readTensorReport = (report: unknown): Report | null => read(TensorReport, report)

/** Of `get_variable_state`; null when it is no such report. */
export const readVariableReport = (report: unknown): Report | null => read(VariableReport, report)

/** Of `run_training_probe`; null when it is no such report. */
export const readProbeReport = (report: unknown): Report | null => read(ProbeReport, report)

function read(schema: z.ZodObject, report: unknown): Report | null {
  if (weighs(report, MAX_WEIGHT, MAX_DEPTH) <= 0) return null
  const parsed = schema.safeParse(report)
  if (!parsed.success) return null
  const own = Object.keys(schema.shape)
  const entries = Object.entries(parsed.data).filter(
    ([name]) => name !== 'error' && (own.includes(name) || isFree(name)),
  )
  const told = parsed.data.error
  // What was parsed came from JSON.
  return { fields: Object.fromEntries(entries as [string, JsonValue][]), error: typeof told === 'string' ? told : null }
}

/** What is left of `budget` after a JSON value; counting stops below zero, and at the depth that is too much. */
function weighs(value: unknown, budget: number, depth: number): number {
  if (typeof value === 'string') return budget - value.length - 1
  if (typeof value !== 'object' || value === null) return budget - 1
  if (depth === 0) return 0
  let left = budget - 1
  for (const [key, item] of Object.entries(value)) {
    left = weighs(item, left - (Array.isArray(value) ? 0 : key.length), depth - 1)
    if (left <= 0) break
  }
  return left
}
