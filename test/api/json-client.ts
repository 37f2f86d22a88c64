/** JSON over plain HTTP, for tests that speak to a whole service. */

import assert from 'node:assert/strict'

export type Json = Record<string, unknown>
export type Reply = { status: number; body: Json }
/** What a reset or a step answers. */
export type Answer = { observation: Json; reward: number | null; done: boolean; metadata: Json }

export class JsonClient {
  readonly #baseUrl: () => string

  /** @param baseUrl Asked for at each request: a server may start after its tests are defined. */
  constructor(baseUrl: () => string) {
    this.#baseUrl = baseUrl
  }

  readonly get = (path: string): Promise<Reply> => this.#ask(path)

  readonly post = (path: string, body: unknown = {}): Promise<Reply> =>
    this.#ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

  /** A reset or a step that has to work. */
  readonly answer = async (path: string, given: unknown): Promise<Answer> => {
    const { status, body } = await this.post(path, given)
    assert.equal(status, 200, JSON.stringify(body))
    return body as Answer
  }

  async #ask(path: string, request: RequestInit = {}): Promise<Reply> {
    const reply = await fetch(this.#baseUrl() + path, request)
    return { status: reply.status, body: (await reply.json()) as Json }
  }
}
