/** How a failure ends a command. */

import { ServiceError } from '../errors.ts'

/** One sentence for a failure that has a name; a stack for one that nobody foresaw. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ServiceError) return `forkyard: ${error.message}`
  if (!(error instanceof Error)) return String(error)
  // An address that is taken or not ours is the caller's to change, and Node's message names it.
  if ('syscall' in error && error.syscall === 'listen')
    return `forkyard: ${error.message} (choose with --host and --port, or with --listen)`
  return error.stack ?? String(error)
}

/** 2 when the caller asked for something impossible, 1 for everything else. */
export function exitCodeOf(error: unknown): number {
  return error instanceof ServiceError && error.code === 'invalid_config' ? 2 : 1
}
