/** Remarks of the service to the agent, which stand behind what its code wrote to stderr. */

import type { Reason } from '../executor/executor.ts'

const BECAUSE: Partial<Record<Reason, string>> = {
  timeout: 'it ran past its time limit',
  memory_limit: 'it used too much memory',
  process_limit: 'it used too many processes',
  output_limit: 'it printed too much',
  disk_limit: 'it used too much disk space',
  exited: 'it exited',
  signal: 'it was ended by a signal',
  protocol_violation: 'it broke the protocol with the service',
  infra_error: 'the service failed',
}

/** A reason as the end of a sentence about a process: "… because it used too much memory". */
export const because = (reason: Reason): string => BECAUSE[reason] ?? 'it ended'

/** For a step that failed although the agent's code met no exception: a child process hit a limit, for instance. */
export const failedAnyway = (reason: Reason): string =>
  `this step counts as failed because ${BECAUSE[reason] ?? reason}.`

/** Add remarks of the service after what a cell wrote, one `note:` line each. */
export function withNotes(text: string, notes: readonly string[]): string {
  if (notes.length === 0) return text
  return `${endLine(text)}${notes.map(note => `note: ${note}\n`).join('')}`
}

/** End a text with a newline, unless it is empty. */
export function endLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}
