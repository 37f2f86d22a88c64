/** A Python process per published client version that runs the scenarios of `python/` on request. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { interpreterIn } from '../../src/setup/paths.ts'
import { TEST_VENVS } from '../../src/setup/setup.ts'

/** The two distributions of the OpenEnv client; each lives in an environment of its own. */
export const PACKAGES = [
  { name: 'openenv 0.10.0', venv: TEST_VENVS.openenv.folder },
  { name: 'openenv-core 0.3.0', venv: TEST_VENVS.openenvCore.folder },
] as const
export type ClientPackage = (typeof PACKAGES)[number]

/** Why tests with this package can't run here, or false. */
export function missing({ venv }: ClientPackage): string | false {
  return existsSync(interpreterIn(venv)) ? false : `${venv} is missing; \`npm run setup -- --tests\` makes it`
}

const SCRIPTS = join(import.meta.dirname, 'python')

type Reply = { summary: unknown } | { failure: string }

/** Requests are answered one at a time, in order. */
export class PythonDriver {
  readonly #process
  readonly #replies
  #queue: Promise<unknown> = Promise.resolve()

  /** Start the interpreter; importing the client happens in the background of the first request. */
  constructor({ venv }: ClientPackage) {
    this.#process = spawn(interpreterIn(venv), ['-u', join(SCRIPTS, 'driver.py')], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, HOME: process.env.HOME, PYTHONDONTWRITEBYTECODE: '1' },
    })
    this.#replies = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]()
  }

  /** Process id of the interpreter, for looks into the process table. */
  get pid(): number | undefined {
    return this.#process.pid
  }

  /**
   * Run one scenario.
   *
   * @param scenario `module.function` below `python/`.
   * @returns The JSON the scenario returned; the caller knows its shape.
   * @throws When the scenario raised: the Python traceback.
   */
  run<Summary>(scenario: string, baseUrl: string, params: Record<string, unknown> = {}): Promise<Summary> {
    const result = this.#queue.then(() => this.#ask(JSON.stringify({ scenario, base_url: baseUrl, params })))
    this.#queue = result.catch((failure: unknown) => failure)
    return result as Promise<Summary>
  }

  async #ask(request: string): Promise<unknown> {
    this.#process.stdin.write(`${request}\n`)
    const { value, done } = await this.#replies.next()
    if (done) throw new Error('the Python process ended without a reply')
    const reply = JSON.parse(value) as Reply
    if ('failure' in reply) throw new Error(reply.failure)
    return reply.summary
  }

  /** Let the process end, and wait for that. */
  async close(): Promise<void> {
    if (this.#process.exitCode !== null) return
    const exit = once(this.#process, 'exit')
    this.#process.stdin.end()
    await exit
  }
}
