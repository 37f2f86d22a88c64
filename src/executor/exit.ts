/** From how a worker ended to the one word an observation gives as its reason. */

import { constants } from 'node:os'
import type { ExitReport } from '../launcher/zygote-frames.ts'
import type { Reason } from './executor.ts'

export type Ending = { reason: Reason; sentence: string }

/**
 * Say why a worker that ended by itself ended. The kernel's counters win over
 * the exit status: a process that ran out of memory dies of a plain SIGKILL.
 *
 * @param report Null when the zygote was gone too, so that nobody saw the end.
 * @param oomKillsBefore Memory kills in the tree before the cell began.
 */
export function explainExit(report: ExitReport | null, oomKillsBefore: number): Ending {
  if (report === null) {
    return { reason: 'infra_error', sentence: 'WorkerLost: the service lost the Python process' }
  }
  if (report.oom_kills > oomKillsBefore) {
    return {
      reason: 'memory_limit',
      sentence: 'MemoryLimit: the episode used more memory than its limit and was ended',
    }
  }
  if (report.signal !== null) {
    const name = signalName(report.signal)
    return { reason: 'signal', sentence: `WorkerSignalled: the Python process died of ${name}` }
  }
  if (report.code !== null) {
    return { reason: 'exited', sentence: `WorkerExited: the Python process exited with status ${report.code}` }
  }
  // Its init saw the frame socket close first, and nothing of the service's had closed it.
  return { reason: 'exited', sentence: 'WorkerExited: the Python process closed its channel to the service' }
}

function signalName(number: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === number)
  return found?.[0] ?? `signal ${number}`
}
