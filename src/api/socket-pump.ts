/**
 * One WebSocket served strictly in order: a frame is handled, its reply is
 * flushed, then the next frame is looked at.
 */

import type { WebSocket } from '@fastify/websocket'

/** Bytes of frames held for a client that sends faster than it is served; past it the socket is closed. */
const MAX_WAITING_BYTES = 512 * 1024 * 1024
/** What a waiting frame costs beside its text, in bytes. */
const FRAME_OVERHEAD_BYTES = 256

/** Longest message sent in one piece, in bytes. */
const FRAGMENT_BYTES = 1024 * 1024

/** Standard close codes used here. */
export const CLOSE = { normal: 1000, goingAway: 1001, refused: 1008, internal: 1011 } as const

export type FrameHandlers = {
  /** Serve one text frame. A rejection closes the socket; handle failures inside. */
  onText: (text: string) => Promise<void>
  /** Serve a binary frame. */
  onBinary: () => Promise<void>
  /** The peer lives: a frame, a ping or a pong arrived, or it took a piece of a large reply. */
  onAlive: () => void
  /** The socket is gone or began to close, for whatever reason; called once. */
  onGone: () => void
}

type Waiting = { data: Buffer; isBinary: boolean }

/** The sending half and the end of a pumped socket. */
export class SocketPump {
  readonly #socket: WebSocket
  readonly #handlers: FrameHandlers
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #running = false
  #isGone = false
  #ending: { code: number; reason: string } | null = null

  constructor(socket: WebSocket, handlers: FrameHandlers) {
    this.#socket = socket
    this.#handlers = handlers
    socket.on('message', (data, isBinary) => this.#accept(toBuffer(data), isBinary))
    socket.on('ping', handlers.onAlive)
    socket.on('pong', handlers.onAlive)
    socket.on('close', () => this.#gone())
    // The library calls this too when the peer's close frame arrives. What the socket holds is free before the
    // closing handshake ends, so that a client that closes and connects again finds its slot.
    const close = socket.close.bind(socket)
    socket.close = (code, reason) => {
      this.#gone()
      close(code, reason)
    }
  }

  /** Send one text message; resolves when it has left the process, or when the socket is gone. */
  async send(text: string): Promise<void> {
    if (text.length <= FRAGMENT_BYTES) return this.#write(text, true)
    // In pieces, so that pings get through between them and a slow reader is seen to read.
    const bytes = Buffer.from(text)
    for (let start = 0; start < bytes.length; start += FRAGMENT_BYTES) {
      const end = start + FRAGMENT_BYTES
      await this.#write(bytes.subarray(start, end), end >= bytes.length)
      this.#handlers.onAlive()
    }
  }

  /** Close after the frame in hand has been answered; frames that wait are dropped. @param reason At most 123 bytes. */
  end(code: number, reason = ''): void {
    this.#ending ??= { code, reason }
    this.#waiting.length = 0
    this.#waitingBytes = 0
    if (!this.#running) this.#close()
  }

  #write(data: string | Buffer, fin: boolean): Promise<void> {
    return new Promise(resolve => {
      if (this.#socket.readyState !== this.#socket.OPEN) return resolve()
      // A failed write means a socket that is closing: `close` follows and tells the owner.
      this.#socket.send(data, { binary: false, fin }, () => resolve())
    })
  }

  #accept(data: Buffer, isBinary: boolean): void {
    this.#handlers.onAlive()
    if (this.#ending !== null || this.#isGone) return
    this.#waiting.push({ data, isBinary })
    this.#waitingBytes += data.length + FRAME_OVERHEAD_BYTES
    // Reading can't be paused instead: a disconnect would go unnoticed until the frames before it were served.
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#socket.close(CLOSE.refused, 'too many frames waiting')
    else if (!this.#running) void this.#run()
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let frame = this.#waiting.shift(); frame !== undefined; frame = this.#waiting.shift()) {
      this.#waitingBytes -= frame.data.length + FRAME_OVERHEAD_BYTES
      try {
        await (frame.isBinary ? this.#handlers.onBinary() : this.#handlers.onText(frame.data.toString('utf8')))
      } catch {
        this.end(CLOSE.internal, 'internal error')
      }
    }
    this.#running = false
    if (this.#ending !== null) this.#close()
  }

  #gone(): void {
    this.#waiting.length = 0
    this.#waitingBytes = 0
    if (this.#isGone) return
    this.#isGone = true
    this.#handlers.onGone()
  }

  #close(): void {
    if (this.#isGone) return
    const { code, reason } = this.#ending ?? { code: CLOSE.normal, reason: '' }
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.close(code, reason)
  }
}

function toBuffer(data: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
