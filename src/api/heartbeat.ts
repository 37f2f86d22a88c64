/** Pings every socket and ends those whose peer has vanished without closing. */

import type { Socket } from 'node:net'
import type { WebSocket } from '@fastify/websocket'

type Watched = {
  connection: Socket
  /** Counters at the last beat; a change of either is a sign of life. */
  bytesRead: number
  unsent: number
  /** A ping went out and nothing has moved since. */
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
    this.#watched.set(socket, { connection, bytesRead: -1, unsent: 0, suspect: false })
    socket.on('close', () => this.#watched.delete(socket))
  }

  /** Stop pinging. Idempotent. */
  close(): void {
    clearInterval(this.#timer)
    this.#watched.clear()
  }

  #beat(): void {
    for (const [socket, watched] of this.#watched) {
      const { bytesRead } = watched.connection
      const unsent = socket.bufferedAmount
      // Bytes of a large frame on its way in, or of a large reply draining out, hold up pongs but prove the peer lives.
      const moved = bytesRead !== watched.bytesRead || unsent < watched.unsent
      if (watched.suspect && !moved) {
        socket.terminate()
        continue
      }
      Object.assign(watched, { bytesRead, unsent, suspect: true })
      if (socket.readyState === socket.OPEN) socket.ping()
    }
  }
}
