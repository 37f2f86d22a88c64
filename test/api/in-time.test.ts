import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ANSWER_DEADLINE_MS, inTime } from '../../src/api/in-time.ts'
import { toFailure } from '../../src/api/status.ts'
import { listen } from './service.ts'
import { WireClient } from './wire-client.ts'

test('inTime() passes on what the call brings', async () => {
  assert.equal(await inTime(Promise.resolve(5)), 5)
  await assert.rejects(inTime(Promise.reject(new Error('own fault'))), /own fault/)
})

test('inTime() ends before clients stop waiting, as a 504', async () => {
  assert.ok(ANSWER_DEADLINE_MS < 60_000)
  const late = await inTime(new Promise(() => undefined), 5).catch((error: unknown) => error)
  const { http, socket, retry, message } = toFailure(late)
  assert.deepEqual([http, socket, retry], [504, 'EXECUTION_ERROR', false])
  assert.match(message, /^No answer within 0.005 s/)
})

test('a late result is never sent: the next frame gets its own answer', async t => {
  const { url, probe } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset' })
  t.mock.timers.enable({ apis: ['setTimeout'] })
  client.send({ type: 'step', data: { say: 'slow', mode: 'wait' } })
  await probe.gate.reached
  t.mock.timers.tick(ANSWER_DEADLINE_MS)
  t.mock.timers.reset()
  const late = await client.next()
  assert.equal(late.data.code, 'EXECUTION_ERROR')
  client.send({ type: 'step', data: { say: 'next' } })
  probe.gate.open()
  assert.equal(((await client.next()).data.observation as { said: string }).said, 'next')
})
