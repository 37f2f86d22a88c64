/** What setup says while it works: lines in a log, one updating line on a terminal. */

import type { Writable } from 'node:stream'

/** Where setup tells what it is doing. */
export type Progress = {
  /** A step begins; stays readable afterwards. */
  stage(text: string): void
  /** Something moved inside the step: shown on a terminal only, where it replaces the detail before. */
  detail(text: string): void
  /** Take the updating line off the screen. */
  close(): void
}

/** A stream that may be a terminal, as `process.stderr` is. */
export type Screen = Writable & { isTTY?: boolean; columns?: number }

const ERASE_LINE = '\r\u001B[2K'

/** Report to a stream. */
export function createProgress(screen: Screen): Progress {
  const isTerminal = screen.isTTY === true
  let pending = false
  const clear = () => {
    if (pending) screen.write(ERASE_LINE)
    pending = false
  }
  return {
    stage(text) {
      clear()
      screen.write(`setup: ${text}\n`)
    },
    detail(text) {
      if (!isTerminal) return
      screen.write(`${ERASE_LINE}  ${text}`.slice(0, ERASE_LINE.length + (screen.columns ?? 80) - 1))
      pending = true
    },
    close: clear,
  }
}
