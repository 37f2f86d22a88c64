/** Pings every socket and ends those whose peer has vanished without closing. */

import type { Socket } from 'node:net'
import type { WebSocket } from '@fastify/websocket'

type Watched = {
  connection: Socket
  /** Counter at the last beat: bytes of a large frame on its way in hold up pongs, but prove that the peer lives. */
  bytesRead: number
  /** A ping went out and there has been no sign of life since. */
  suspect: boolean
}

/** One timer for all sockets. */
export class Heartbeat {
  readonly #watched = new Map<WebSocket, Watched>()
  readonly #timer: NodeJS.Timeout

  /** @param intervalMs Time between pings; a peer silent for one whole interval is gone. */
  constructor(intervalMs: number) {
    this.#timer = setInterval(() => this.#beat(), intervalMs).unref()
  }

  /** Watch a socket until it closes. @param connection The TCP socket under it. */
  watch(socket: WebSocket, connection: Socket): void {
    this.#watched.set(socket, { connection, bytesRead: -1, suspect: false })
    socket.on('close', () => this.#watched.delete(socket))
  }

  /** A sign of life that the connection's own counter doesn't show. */
  sign(socket: WebSocket): void {
    const watched = this.#watched.get(socket)
    if (watched !== undefined) watched.suspect = false
  }

  /** Stop pinging. Idempotent. */
  close(): void {
    clearInterval(this.#timer)
    this.#watched.clear()
  }

  #beat(): void {
    for (const [socket, watched] of this.#watched) {
      const { bytesRead } = watched.connection
      if (watched.suspect && bytesRead === watched.bytesRead) {
        socket.terminate()
        continue
      }
      Object.assign(watched, { bytesRead, suspect: true })
      if (socket.readyState === socket.OPEN) socket.ping()
    }
  }
}
