/** What `metadata` tells of a step, whatever the environment. */

import type { CapturedText, CellOutcome } from '../executor/executor.ts'
import type { JsonObject } from './environment.ts'

/** Why a cell ended, whether the variables survived, what it used and how much it printed. */
export function outcomeFacts(outcome: CellOutcome): JsonObject {
  return {
    reason: outcome.reason,
    state_kept: outcome.state_kept,
    usage: outcome.usage,
    output: { stdout: textTotals(outcome.stdout), stderr: textTotals(outcome.stderr) },
  }
}

/** The same facts for a step that ran nothing. */
export function idleFacts(message: string): JsonObject {
  const total_chars = message.length
  const none = { total_chars: 0, total_bytes: 0, truncated: false }
  return {
    reason: 'ok',
    state_kept: true,
    usage: { wall_ms: 0, cpu_ms: 0, peak_memory_bytes: null, subcall_wait_ms: 0, queued_ms: 0 },
    output: { stdout: { total_chars, total_bytes: Buffer.byteLength(message), truncated: false }, stderr: none },
  }
}

function textTotals({ total_chars, total_bytes, truncated }: CapturedText): JsonObject {
  return { total_chars, total_bytes, truncated }
}
