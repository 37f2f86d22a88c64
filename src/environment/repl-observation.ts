/** Builds what a repl step answers: the wire's own fields, and the service's additions in `metadata`. */

import type { JsonObject, StepResult } from './environment.ts'
import type { ReplStart } from './repl-reset.ts'
import { openingText, READY_MESSAGE } from './repl-text.ts'

/** The fields of `observation.result`. */
export type ShownResult = {
  stdout: string
  stderr: string
  locals_snapshot: Record<string, string>
  /** Wall seconds. */
  execution_time: number
  success: boolean
  exception: string | null
}

/** Where the episode stands. */
export type Progress = { variables: string[]; iteration: number; maxIterations: number }

/** Which part of the context an observation shows; endings that ran nothing show none. */
export type ShownContext = Pick<ReplStart, 'contextPreview' | 'contextLength'>

const NO_CONTEXT: ShownContext = { contextPreview: null, contextLength: 0 }

/** A result whose stdout is a message of the service; no code ran. */
export function messageResult(message: string, success: boolean): ShownResult {
  return { stdout: message, stderr: '', locals_snapshot: {}, execution_time: 0, success, exception: null }
}

/** What the reset answers. */
export function openingResult(start: ReplStart, progress: Progress): StepResult {
  return stepResult({
    shown: messageResult(openingText(start.contextLength, start.taskPrompt), true),
    context: start,
    progress,
    metadata: { task_prompt: start.taskPrompt, message: READY_MESSAGE },
    // Both generations of clients take both values; each sees the one its own server sends.
    reward: start.expected === null ? 0 : null,
    done: false,
  })
}

export type StepParts = {
  shown: ShownResult
  /** Null shows no context. */
  context: ShownContext | null
  progress: Progress
  metadata: JsonObject
  reward: number | null
  done: boolean
}

/** Put a step's parts into their places; `metadata` goes into both of its places. */
export function stepResult({ shown, context, progress, metadata, reward, done }: StepParts): StepResult {
  const { contextPreview, contextLength } = context ?? NO_CONTEXT
  const observation = {
    result: shown,
    context_preview: contextPreview,
    context_length: contextLength,
    available_variables: progress.variables,
    iteration: progress.iteration,
    max_iterations: progress.maxIterations,
    metadata,
  }
  return { observation, reward, done, metadata }
}

/** The answer to a step after the end: the last observation again, worth nothing. */
export function repeatedResult({ observation, metadata }: StepResult): StepResult {
  const repeated = { ...metadata, repeated: true, reward_reason: 'the episode is over; nothing was run' }
  return { observation: { ...observation, metadata: repeated }, reward: 0, done: true, metadata: repeated }
}
