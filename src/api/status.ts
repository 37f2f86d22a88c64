/**
 * What each failure of the service is called on each wire.
 *
 * Total over `FailureCode`: a code added to `src/errors.ts` doesn't compile
 * until it has a row here. `docs/protocol.md` prints the same table.
 */

import { CapacityError, type FailureCode, messageOf, ServiceError } from '../errors.ts'
import { LateAnswer } from './in-time.ts'

/** `code` of a WebSocket `error` frame; the list is closed on the client's side. */
export type SocketCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'FACTORY_ERROR'
  | 'SESSION_ERROR'

/** JSON-RPC 2.0 error codes in use. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  server: -32000,
} as const

export type FailureStatus = {
  http: number
  socket: SocketCode
  rpc: number
  /** Whether the same request may succeed later without a change. */
  retry: boolean
}

export const FAILURE_STATUS: Record<FailureCode, FailureStatus> = {
  invalid_config: { http: 500, socket: 'FACTORY_ERROR', rpc: RPC.server, retry: false },
  missing_tool: { http: 503, socket: 'FACTORY_ERROR', rpc: RPC.server, retry: false },
  invalid_request: { http: 422, socket: 'VALIDATION_ERROR', rpc: RPC.invalidParams, retry: false },
  episode_not_found: { http: 404, socket: 'EXECUTION_ERROR', rpc: RPC.invalidParams, retry: false },
  not_reset: { http: 409, socket: 'EXECUTION_ERROR', rpc: RPC.server, retry: false },
  capacity_reached: { http: 503, socket: 'CAPACITY_REACHED', rpc: RPC.server, retry: true },
  queue_full: { http: 503, socket: 'EXECUTION_ERROR', rpc: RPC.server, retry: true },
  isolation_unavailable: { http: 503, socket: 'EXECUTION_ERROR', rpc: RPC.server, retry: false },
  worker_start_failed: { http: 503, socket: 'EXECUTION_ERROR', rpc: RPC.server, retry: true },
  protocol_violation: { http: 500, socket: 'EXECUTION_ERROR', rpc: RPC.internal, retry: false },
  shutting_down: { http: 503, socket: 'EXECUTION_ERROR', rpc: RPC.server, retry: true },
  internal: { http: 500, socket: 'EXECUTION_ERROR', rpc: RPC.internal, retry: false },
}

/** Seconds a client is asked to wait before it tries again. */
export const RETRY_AFTER_S = 1

/** A failure as any wire reports it. */
export type Failure = FailureStatus & {
  code: FailureCode
  message: string
  /** Extra keys beside the message: what a full server tells. */
  facts: { active_sessions: number; max_sessions: number } | null
}

/** Name whatever was thrown; anything but a `ServiceError` is `internal`, and 504 where an answer came too late. */
export function toFailure(error: unknown): Failure {
  const code = error instanceof ServiceError ? error.code : 'internal'
  const message = messageOf(error)
  if (error instanceof LateAnswer) return { ...FAILURE_STATUS.internal, http: 504, code, message, facts: null }
  const facts =
    error instanceof CapacityError ? { active_sessions: error.activeSessions, max_sessions: error.maxSessions } : null
  return { ...FAILURE_STATUS[code], code, message, facts }
}
