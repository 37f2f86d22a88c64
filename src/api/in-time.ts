/** No answer later than the moment at which clients stop waiting. */

/**
 * Clients of OpenEnv give up after 60 s, and the older ones then take a late
 * reply for the answer to their next call. The limits of a step end well before
 * this; it can only pass when calls queue behind each other or an environment hangs.
 */
export const ANSWER_DEADLINE_MS = 57_000

/** The call goes on, but nobody waits for it any more. */
export class LateAnswer extends Error {
  override readonly name = 'LateAnswer'

  constructor(deadlineMs: number) {
    super(`No answer within ${deadlineMs / 1000} s: the call still waits or runs, and its result will not be sent`)
  }
}

/**
 * Wait for a call as long as a client does.
 *
 * @throws {LateAnswer} when the deadline passes first; whatever the call throws otherwise.
 */
export function inTime<Result>(call: Promise<Result>, deadlineMs = ANSWER_DEADLINE_MS): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new LateAnswer(deadlineMs)), deadlineMs)
    call.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
