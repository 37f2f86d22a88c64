/**
 * Every way the service itself can fail, named by the boundary that failed.
 *
 * Agent code that raises is not listed: that is an observation, and it scores.
 */

/** Clients branch on these words, so renaming one is a breaking change. */
export const FAILURE_CODES = [
  'invalid_config',
  'missing_tool',
  'invalid_request',
  'episode_not_found',
  'not_reset',
  'capacity_reached',
  'queue_full',
  'isolation_unavailable',
  'worker_start_failed',
  'protocol_violation',
  'shutting_down',
  'internal',
] as const

export type FailureCode = (typeof FAILURE_CODES)[number]

/** A failure at one boundary. Compare `code`, never the message or the class. */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError'
  readonly code: FailureCode

  constructor(code: FailureCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** No slot is free. Carries what an OpenEnv client is told beside the message. */
export class CapacityError extends ServiceError {
  override readonly name = 'CapacityError'
  readonly activeSessions: number
  readonly maxSessions: number

  constructor(activeSessions: number, maxSessions: number) {
    super(
      'capacity_reached',
      `Server at capacity: ${activeSessions}/${maxSessions} sessions active. Cannot accept new connections.`,
    )
    this.activeSessions = activeSessions
    this.maxSessions = maxSessions
  }
}

/** The words of a failure, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
