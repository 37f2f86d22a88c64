/** Which session a socket holds: its own, or one that was opened over HTTP and that it attaches to. */

import type { Session } from '../environment/sessions.ts'

/** Sessions that have a socket, and those that end with it. */
export class SocketClaims {
  readonly #held = new Set<Session>()
  readonly #closing = new Set<Session>()

  /** Take a session for a socket. @returns false when another socket has it. */
  claim(session: Session): boolean {
    if (this.#held.has(session)) return false
    this.#held.add(session)
    session.onClose(() => {
      this.#held.delete(session)
      this.#closing.delete(session)
    })
    return true
  }

  /** The socket is gone; a session that was only lent to it goes on unless it was asked to close. */
  release(session: Session): void {
    if (this.#closing.has(session)) session.close('client')
    this.#held.delete(session)
  }

  /** Close a session, or, while a socket has it, remember to. @returns Whether it is closed now. */
  close(session: Session): boolean {
    if (this.#held.has(session)) {
      this.#closing.add(session)
      return false
    }
    session.close('client')
    return true
  }
}
