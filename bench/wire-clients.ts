/** The two clients the figures are taken with: one keep-alive HTTP connection, one WebSocket. */

import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { WebSocket } from 'ws'

export type Reply = { done: boolean; metadata: { episode_id: string } & Record<string, unknown> }

/** POST JSON over one connection that stays open. */
export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  post(path: string, body: unknown): Promise<Reply> {
    const payload = JSON.stringify(body)
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }
    return new Promise((resolve, reject) => {
      const call = request(`${this.#url}${path}`, { method: 'POST', agent: this.#agent, headers }, answer => {
        const chunks: Buffer[] = []
        answer.on('data', chunk => chunks.push(chunk))
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          if (answer.statusCode === 200) resolve(JSON.parse(text))
          else reject(new Error(`${path} answered ${answer.statusCode}: ${text}`))
        })
      })
      call.on('error', reject)
      call.end(payload)
    })
  }

  async delete(path: string): Promise<void> {
    await fetch(`${this.#url}${path}`, { method: 'DELETE' })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** One episode over a WebSocket, one frame at a time. */
export class SocketClient {
  readonly #socket: WebSocket

  private constructor(socket: WebSocket) {
    this.#socket = socket
  }

  static async connect(url: string): Promise<SocketClient> {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`)
    await once(socket, 'open')
    return new SocketClient(socket)
  }

  async send(type: 'reset' | 'step', data: Record<string, unknown>): Promise<Reply> {
    const reply = once(this.#socket, 'message')
    this.#socket.send(JSON.stringify({ type, data }))
    const [text] = await reply
    const frame = JSON.parse(String(text))
    if (frame.type !== 'observation') throw new Error(`${type} answered ${text}`)
    return frame.data
  }

  close(): void {
    this.#socket.close()
  }
}
