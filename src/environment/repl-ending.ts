/** Decides whether a step gave a final answer. */

import type { CellOutcome } from '../executor/executor.ts'
import type { PrintedEnding } from './printed-final.ts'
import { ANSWER_NOT_TAKEN, ignoredHint, noVariableHint } from './repl-text.ts'

/**
 * `notes` tell the agent why something that looked like an ending was none;
 * `state_kept` is false when looking for it cost the episode its process.
 */
export type ReplEnding = { answer: string | null; notes: string[]; state_kept: boolean }

/** How `EpisodeWorker.lookup` answers. */
type Lookup = (names: string[]) => Promise<{ value: string | null; state_kept: boolean }>

/**
 * Find the final answer of a step; the first of these that exists:
 *
 * 1. a value handed to `FINAL` or `FINAL_VAR`, on the private channel;
 * 2. a printed `FINAL(…)` line;
 * 3. a printed `FINAL_VAR(name)` line, if that variable has a value;
 * 4. the `answer` dict, if its `ready` is the boolean True.
 *
 * A step in which the service failed is void, so it gives none.
 *
 * @param lookup Text of the first variable that has one; asked only about a live namespace.
 */
export async function findEnding(outcome: CellOutcome, printed: PrintedEnding, lookup: Lookup): Promise<ReplEnding> {
  const direct = outcome.final ?? printed.answer
  let { state_kept } = outcome
  if (outcome.reason === 'infra_error') {
    return { answer: null, notes: direct === null ? [] : [ANSWER_NOT_TAKEN], state_kept }
  }
  if (direct !== null) return { answer: direct, notes: [], state_kept }
  if (state_kept && printed.names.length > 0) {
    const found = await lookup([...printed.names])
    if (found.value !== null) return { answer: found.value, notes: [], state_kept }
    state_kept = found.state_kept
  }
  if (outcome.answer?.ready === true) return { answer: outcome.answer.content, notes: [], state_kept }
  // A helper that found nothing says so itself, and its echo is no candidate.
  const helperSpoke = outcome.stderr.text.includes('FINAL_VAR found no variable')
  const notes = helperSpoke ? [] : [...printed.ignored].map(ignoredHint)
  // The helper explains a missing variable itself; only text printed without it needs words from here.
  if (printed.names.length > 0 && !outcome.stderr.text.includes('FINAL_VAR')) notes.push(noVariableHint(printed.names))
  return { answer: null, notes, state_kept }
}
