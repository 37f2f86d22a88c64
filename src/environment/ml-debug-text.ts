/** Words the ml_debug environment says to the agent and its client. Clients know the first four literally. */

import type { CellOutcome } from '../executor/executor.ts'
import type { Restoration } from './ml-debug-journal.ts'
import { because } from './notes.ts'

export const noSession = (episodeId: string): string =>
  `No active session for episode_id '${episodeId}'. Call reset() first.`
export const ALREADY_COMPLETE = 'Episode already complete. Call reset() to start a new episode.'
export const turnsExceeded = (maxTurns: number): string => `Maximum turns (${maxTurns}) exceeded. Episode terminated.`
export const EMPTY_SUBMISSION = 'Empty code submitted'
export const READY_MESSAGE = 'Environment ready.'
/** Marks a failure of the service: the same action may be tried again. */
export const infraError = (why: string): string => `infra_error: ${why}`

/** Longest text of a failed call in `error`, in UTF-16 units. */
const MAX_ERROR_CHARS = 500

/** A field that holds more than it may. */
export const tooLong = (field: string, found: number, limit: number, unit: string): string =>
  `${field} is too long: ${found} ${unit}, at most ${limit} are taken`

/** A field that an action can't do without. */
export const missing = (field: string, what: string): string => `${field} is empty: ${what}`

/**
 * What went wrong in a call, as `error` tells it; null when nothing did.
 *
 * @param limitMs The limit that the call ran under.
 */
export function failureOf({ reason, exception }: CellOutcome, limitMs: number): string | null {
  if (reason === 'ok') return null
  if (reason === 'infra_error') return infraError(exception ?? 'the service failed')
  if (reason === 'timeout') return `Timed out: the call ran past its limit of ${limitMs / 1000} s`
  if (exception !== null) return exception.slice(0, MAX_ERROR_CHARS)
  return `The call failed because ${because(reason)}`
}

/** Tells the agent that the call cost the episode its process, and what becomes of its variables. */
export function lostNote({ reason }: CellOutcome, hadState: boolean): string {
  const what = hadState ? 'what earlier calls set up is made again before the next call' : 'it had no variables yet'
  return `the Python process was replaced because ${because(reason)}: ${what}.`
}

/** Tells the agent how its variables came back before this call. */
export function restoredNote({ missing: turns }: Restoration): string {
  const ran = 'the Python process was new: the cells of earlier calls were run again'
  if (turns.length === 0) return `${ran}, all variables are back.`
  const [which, only] = turns.length === 1 ? ['turn', 'it'] : ['turns', 'they']
  return `${ran}, except for ${which} ${turns.join(', ')}: what only ${only} set up is gone.`
}

/** Tells the agent that its process ended just before this call. @param why Sentence of the executor. */
export function ranWithoutNote(why: string): string {
  return `the Python process had ended before this call (${why}), which ran without the variables of earlier ones.`
}

/** For a report that is none: agent code reached into what measures, or broke it. */
export const UNREADABLE_REPORT = 'The measurement could not be read: what came back is not what the tool reports'

/** Expressions beyond those that are evaluated. */
export const skippedNote = (skipped: number, limit: number): string =>
  `${skipped} expressions were not evaluated: a call takes ${limit} at most.`
