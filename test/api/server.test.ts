import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { ServiceError } from '../../src/errors.ts'
import { startServer } from '../../src/server.ts'
import { workerPython } from '../../src/setup/interpreter.ts'
import { WireClient } from './wire-client.ts'

const settings = { PORT: '0', FORKYARD_TORCH: 'none', WARM_SPARES: '1', LOG_LEVEL: 'silent' }

/** Why no worker can run on this host, or false. */
function missingPython(): string | false {
  try {
    workerPython(readConfig({}))
    return false
  } catch (error) {
    if (error instanceof ServiceError) return error.message
    throw error
  }
}
const skip = missingPython()

/** Ids of the processes that this one started and that are still there. */
function children(): string {
  return readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
}

async function start(t: TestContext, overrides: NodeJS.ProcessEnv = {}) {
  const server = await startServer(readConfig({ ...settings, ...overrides }))
  t.after(() => server.close())
  return server
}

type Reply = { observation: { result: { stdout: string } }; metadata: { episode_id: string } }

async function post(url: string, body: object): Promise<Reply> {
  const headers = { 'content-type': 'application/json' }
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.equal(reply.status, 200)
  return (await reply.json()) as Reply
}

test('startServer() serves episodes of real workers over HTTP and WebSocket, and close() ends them', {
  skip,
}, async t => {
  const server = await start(t)
  const { metadata } = await post(`${server.url}/repl/reset`, { context: 'hello' })
  const action = { code: 'print(len(context))' }
  const stepped = await post(`${server.url}/step`, { action, episode_id: metadata.episode_id })
  assert.equal(stepped.observation.result.stdout, '5\n')

  const client = await WireClient.open(t, `${server.url}/ws`)
  await client.ask({ type: 'reset' })
  client.send({ type: 'step', data: { code: 'import time\nprint("on", flush=True)\ntime.sleep(60)' } })
  await server.close()
  assert.equal((await client.ended).code, 1001)
  await assert.rejects(fetch(`${server.url}/health`))
  await server.close()
})

test('startServer() tells of an address in use and leaves nothing running', { skip }, async t => {
  const taken = createServer()
  await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
  t.after(() => taken.close())
  const address = taken.address()
  const port = typeof address === 'object' && address !== null ? String(address.port) : assert.fail('no port')
  const before = children()
  await assert.rejects(start(t, { PORT: port }), { code: 'EADDRINUSE' })
  assert.deepEqual(children(), before)
})

test('startServer() refuses a default environment that does not exist', { skip }, async t => {
  await assert.rejects(start(t, { FORKYARD_ENV: 'chess' }), { code: 'invalid_config', message: /chess/ })
})

test('startServer() serves several addresses, which share their episodes', { skip }, async t => {
  const server = await start(t, { FORKYARD_LISTEN: '0=repl 0=ml_debug' })
  const [repl, other] = server.addresses
  assert.ok(repl !== undefined && other !== undefined)
  assert.equal(repl.url, server.url)
  assert.deepEqual([repl.environment, other.environment], ['repl', 'ml_debug'])
  const nameAt = async (url: string) => ((await (await fetch(`${url}/metadata`)).json()) as { name: string }).name
  assert.deepEqual([await nameAt(repl.url), await nameAt(other.url)], ['repl_env', 'whipstudio'])
  const { metadata } = await post(`${repl.url}/reset`, { context: 'hello' })
  const step = { action: { code: 'print(context)' }, episode_id: metadata.episode_id }
  assert.equal((await post(`${other.url}/repl/step`, step)).observation.result.stdout, 'hello\n')
})
