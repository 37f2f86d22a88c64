/** From a reset request to what an episode starts with. */

import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import type { ExpectedAnswer } from '../reward/answer.ts'
import { episodeIdField, foldSeed, seedField } from './fields.ts'
import { ReplReset } from './repl-schemas.ts'

/** Defaults that a reset falls back to. */
export type ReplDefaults = {
  context: string
  taskPrompt: string
  /** Unicode characters of the context shown in observations. */
  previewChars: number
}

/** What an episode knows of its reset. Keys for models are not part of it: nothing keeps them. */
export type ReplStart = {
  episodeId: string
  context: string
  contextLength: number
  contextPreview: string | null
  taskPrompt: string
  expected: ExpectedAnswer | null
  /** In [0, 2^32), which is what `random`, numpy and torch all take. */
  seed: number | null
}

// A transport that doesn't check resets may hand on an odd seed or id: it counts as not given.
const TolerantReset = ReplReset.extend({ seed: seedField().catch(null), episode_id: episodeIdField().catch(null) })

/**
 * Read a reset request.
 *
 * @throws {ServiceError} `invalid_request` when a field other than seed and episode_id has the wrong type.
 */
export function readReplReset(request: Record<string, unknown>, defaults: ReplDefaults): ReplStart {
  const parsed = TolerantReset.safeParse(request)
  if (!parsed.success) throw new ServiceError('invalid_request', z.prettifyError(parsed.error))
  const reset = parsed.data
  // Clients send '' for "not given", so an empty text can't override a configured default.
  const context = reset.context || defaults.context
  return {
    episodeId: reset.episode_id || randomUUID(),
    context,
    contextLength: countCodePoints(context),
    contextPreview: context === '' ? null : firstCodePoints(context, defaults.previewChars),
    taskPrompt: reset.task_prompt || defaults.taskPrompt,
    expected: reset.expected_answer ?? null,
    seed: typeof reset.seed === 'number' ? foldSeed(reset.seed) : null,
  }
}

/** Length as Python's `len` counts it; an index loop, because a context can have 100 million characters. */
export function countCodePoints(text: string): number {
  let pairs = 0
  for (let index = 1; index < text.length; index++) {
    if (isLowSurrogate(text.charCodeAt(index)) && isHighSurrogate(text.charCodeAt(index - 1))) pairs++
  }
  return text.length - pairs
}

/** The first `count` Unicode characters. */
export function firstCodePoints(text: string, count: number): string {
  // Twice as many code units always hold enough characters.
  return [...text.slice(0, 2 * count)].slice(0, count).join('')
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}
