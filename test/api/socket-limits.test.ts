import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { listen } from './service.ts'
import { WireClient } from './wire-client.ts'

const step = (data: Record<string, unknown> = {}) => ({ type: 'step', data })

test('/ws takes a frame of 100 MB', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  const context = 'x'.repeat(100_000_000)
  const reply = await client.ask({ type: 'reset', data: { context } })
  assert.equal((reply.data.observation as { context_length: number }).context_length, context.length)
})

test('/ws closes 1009 on a frame beyond the limit', async t => {
  const { url } = await listen(t, { maxBodyMib: 1 })
  const client = await WireClient.open(t, `${url}/ws`)
  client.send('x'.repeat(1024 * 1024 + 1))
  assert.equal((await client.ended).code, 1009)
})

test('/ws closes the socket of a session that the table closes', async t => {
  const { url, sessions } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset', data: { episode_id: 'old' } })
  sessions.find('old')?.close('lifetime')
  assert.deepEqual(await client.ended, { code: 1000, reason: 'lifetime' })
})

test('a peer that answers no ping is gone after two intervals, one that answers stays', async t => {
  const { url, sessions } = await listen(t, { pingMs: 100 })
  const frozen = await WireClient.open(t, `${url}/ws`, { autoPong: false })
  const alive = await WireClient.open(t, `${url}/ws`)
  assert.equal(sessions.active, 2)
  assert.equal((await frozen.ended).code, 1006)
  await once(alive.socket, 'ping')
  assert.equal(sessions.active, 1)
  assert.equal((await alive.ask({ type: 'reset' })).type, 'observation')
})

test('a socket whose peer answers pings is not idle', async t => {
  const { url, sessions } = await listen(t, { pingMs: 20, idleMs: 200 })
  const client = await WireClient.open(t, `${url}/ws`)
  for (let pings = 0; pings < 20; pings += 1) await once(client.socket, 'ping')
  assert.equal(sessions.active, 1)
})

test('closing the app closes sockets with 1001', async t => {
  const { url, app, sessions } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset' })
  sessions.close()
  await app.close()
  assert.equal((await client.ended).code, 1001)
})

test('a step that runs when the service closes is told so before its socket closes', async t => {
  const { url, app, sessions, probe } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset' })
  client.send(step({ mode: 'wait' }))
  await probe.gate.reached
  sessions.close()
  const closing = app.close()
  probe.gate.open()
  const answer = await client.next()
  assert.deepEqual([answer.type, answer.data.failure], ['error', 'shutting_down'])
  assert.equal((await client.ended).code, 1001)
  await closing
})

test('a peer that reads a large reply slowly is served to the end', async t => {
  const { url } = await listen(t, { pingMs: 100 })
  const client = await WireClient.open(t, `${url}/ws`, { autoPong: false })
  await client.ask({ type: 'reset', data: { context: 'é'.repeat(20_000_000) } })
  client.send({ type: 'state' })
  const reply = client.next()
  let reading = true
  void reply.finally(() => {
    reading = false
  })
  while (reading) {
    client.socket.pause()
    await delay(20)
    client.socket.resume()
    await delay(1)
  }
  assert.equal(String((await reply).data.context).length, 20_000_000)
})
