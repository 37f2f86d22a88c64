/** Words the repl environment says to the agent and its client. Clients match the first four literally. */

import type { Reason } from '../executor/executor.ts'
import { because } from './notes.ts'
import type { IgnoredWhy } from './printed-final.ts'

export const READY_MESSAGE = 'Environment ready.'
export const SUBMITTED_MESSAGE = 'Final answer submitted.'
export const limitMessage = (maxIterations: number): string => `Maximum iterations (${maxIterations}) reached.`

/** What a reset prints. Lengths in Unicode characters. */
export function openingText(contextLength: number, taskPrompt: string): string {
  const lines = ['REPL environment initialized.']
  if (contextLength > 0) {
    lines.push(`Context loaded (${contextLength} chars). Use 'context' variable to access it.`)
  }
  if (taskPrompt !== '') lines.push(`Task: ${taskPrompt}`)
  lines.push("Use answer['content'] to store your answer, and set answer['ready'] = True when done.")
  return lines.join('\n')
}

const USE_HELPER = 'To end the episode, call FINAL(value) as a function.'

const IGNORED: Record<IgnoredWhy, string> = {
  in_context: `a printed FINAL line was ignored: the same text occurs in the context. ${USE_HELPER}`,
  quoted: `a FINAL text in quotes is a value, not an ending. ${USE_HELPER}`,
  unclosed: `a printed FINAL line was ignored: its bracket never closes. ${USE_HELPER}`,
  trailing_text: `a printed FINAL line was ignored: text follows its closing bracket. ${USE_HELPER}`,
  too_long: `a printed FINAL text was ignored: it is too long to be read from output. ${USE_HELPER}`,
  not_a_name: 'a printed FINAL_VAR line was ignored: it does not hold exactly one variable name.',
  too_many: `some printed FINAL lines were ignored: there were too many. ${USE_HELPER}`,
}

/** Why something that looked like an ending was none. */
export const ignoredHint = (why: IgnoredWhy): string => IGNORED[why]

/** A printed `FINAL_VAR` whose variable is missing or None. */
export function noVariableHint(names: readonly string[]): string {
  return `a printed FINAL_VAR line was ignored: no variable with a value is named ${names.join(' or ')}.`
}

/** The answer of a step that the service itself failed in. */
export const ANSWER_NOT_TAKEN = 'the service failed during this step, so its answer was not taken; submit it again.'

/** Tells the agent that its variables are gone, and what is there again. */
export function stateLostHint(reason: Reason, hasContext: boolean): string {
  return `the Python process was replaced because ${because(reason)}: ${whatIsLeft(hasContext)}.`
}

/** Tells the agent that its variables were gone before this step began. @param why Sentence of the executor. */
export function restartedHint(why: string, hasContext: boolean): string {
  return `the Python process had ended since the last step (${why}) and was replaced: ${whatIsLeft(hasContext)}.`
}

function whatIsLeft(hasContext: boolean): string {
  const back = hasContext ? '`context` and the helper functions are' : 'the helper functions are'
  return `${back} back, all other variables are gone`
}
