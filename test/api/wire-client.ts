/** A WebSocket client for tests: frames out, frames in, and how the socket ended. */

import type { TestContext } from 'node:test'
import WebSocket from 'ws'

export type Frame = { type: string; data: Record<string, unknown> }
export type Ending = { code: number; reason: string }

export class WireClient {
  readonly socket: WebSocket
  /** Resolves when the socket has closed. */
  readonly ended: Promise<Ending>
  readonly #received: string[] = []
  readonly #readers: ((text: string) => void)[] = []

  private constructor(socket: WebSocket) {
    this.socket = socket
    this.ended = new Promise(resolve => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
    socket.on('message', data => {
      const text = data.toString()
      const reader = this.#readers.shift()
      if (reader === undefined) this.#received.push(text)
      else reader(text)
    })
  }

  /** Connect; the socket is terminated when the test ends. */
  static async open(t: TestContext, url: string, options: WebSocket.ClientOptions = {}): Promise<WireClient> {
    const socket = new WebSocket(url.replace(/^http/, 'ws'), { perMessageDeflate: false, ...options })
    const client = new WireClient(socket)
    t.after(() => socket.terminate())
    await new Promise((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
    })
    socket.on('error', () => undefined)
    return client
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame))
  }

  /** The text of the next frame. */
  nextText(): Promise<string> {
    const text = this.#received.shift()
    return text === undefined ? new Promise(resolve => this.#readers.push(resolve)) : Promise.resolve(text)
  }

  async next(): Promise<Frame> {
    return JSON.parse(await this.nextText())
  }

  /** Send one frame and wait for the next one. */
  ask(frame: unknown): Promise<Frame> {
    this.send(frame)
    return this.next()
  }
}
