import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listen } from './service.ts'
import { WireClient } from './wire-client.ts'

const step = (data: Record<string, unknown> = {}) => ({ type: 'step', data })

test('/ws answers reset, step and state, with metadata in both places', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  const reset = await client.ask({ type: 'reset', data: { episode_id: 'one', context: 'abc', unknown: 1 } })
  assert.equal(reset.type, 'observation')
  assert.deepEqual(Object.keys(reset.data), ['observation', 'reward', 'done', 'metadata'])
  assert.deepEqual(reset.data.metadata, { note: 'probe', episode_id: 'one' })
  const stepped = await client.ask(step({ say: 'hi', loud: 'yes', count: '3' }))
  assert.deepEqual(stepped.data, {
    observation: { said: 'HI', count: 3, steps: 1, metadata: { note: 'probe', episode_id: 'one' } },
    reward: 0.5,
    done: false,
    metadata: { note: 'probe', episode_id: 'one' },
  })
  assert.deepEqual(await client.ask({ type: 'state' }), {
    type: 'state',
    data: { episode_id: 'one', step_count: 1, context: 'abc' },
  })
})

test('/ws serves the same at the prefix', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/probe/ws`)
  assert.equal((await client.ask({ type: 'reset' })).type, 'observation')
})

test('/ws closes 1000 on a close frame, without a reply', async t => {
  const { url, sessions } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  client.send({ type: 'close' })
  assert.equal((await client.ended).code, 1000)
  assert.equal(sessions.active, 0)
})

test('/ws takes timeout_s beside the data of a step', async t => {
  const { url, probe } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset' })
  for (const timeout_s of [1.5, '2', null]) await client.ask({ ...step(), timeout_s })
  await client.ask(step())
  assert.deepEqual(probe.limits, [1.5, 2, undefined, undefined])
  assert.equal((await client.ask({ ...step(), timeout_s: -1 })).data.code, 'VALIDATION_ERROR')
})

test('/ws reset passes a negative seed', async t => {
  const { url, probe } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset', data: { seed: -5 } })
  assert.equal(probe.resets[0]?.seed, -5)
})

const bad: [name: string, frame: unknown, code: string, message: RegExp][] = [
  ['text that is not JSON', '{"type":', 'INVALID_JSON', /^Invalid JSON: Expecting value/],
  ['an empty frame', '', 'INVALID_JSON', /^Invalid JSON: /],
  [
    'nesting beyond any use',
    '['.repeat(100_000) + ']'.repeat(100_000),
    'INVALID_JSON',
    /^Invalid JSON: nested too deep/,
  ],
  ['a missing type', {}, 'UNKNOWN_TYPE', /^Unknown message type: $/],
  ['an unknown type', { type: 'fly' }, 'UNKNOWN_TYPE', /^Unknown message type: fly$/],
  ['a type from Object.prototype', { type: 'constructor' }, 'UNKNOWN_TYPE', /^Unknown message type: constructor$/],
  ['reset data null', { type: 'reset', data: null }, 'VALIDATION_ERROR', /^Invalid message$/],
  ['reset data of the wrong type', { type: 'reset', data: { context: 5 } }, 'VALIDATION_ERROR', /^Invalid message$/],
  ['a step without data', { type: 'step' }, 'VALIDATION_ERROR', /^Invalid message$/],
  ['a step with a key beside data', { ...step(), extra: 5 }, 'VALIDATION_ERROR', /^Invalid message$/],
  ['an unknown action key', step({ tell: 'x' }), 'VALIDATION_ERROR', /^Invalid message$/],
  ['a __proto__ key in an action', '{"type":"step","data":{"say":5,"__proto__":{"x":1}}}', 'VALIDATION_ERROR', /./],
  ['state with data', { type: 'state', data: {} }, 'VALIDATION_ERROR', /^Invalid message$/],
  ['close with another key', { type: 'close', x: 1 }, 'VALIDATION_ERROR', /^Invalid message$/],
  ['an action that throws', step({ mode: 'throw' }), 'EXECUTION_ERROR', /^thrown at once$/],
  ['an action that rejects', step({ mode: 'reject' }), 'EXECUTION_ERROR', /^rejected later$/],
  ['a reply that is no JSON', step({ mode: 'cycle' }), 'EXECUTION_ERROR', /circular/],
]
for (const [name, frame, code, message] of bad) {
  test(`/ws answers ${name} with ${code} and keeps the episode`, async t => {
    const { url } = await listen(t)
    const client = await WireClient.open(t, `${url}/ws`)
    await client.ask({ type: 'reset', data: { episode_id: 'kept' } })
    const reply = await client.ask(frame)
    assert.equal(reply.type, 'error')
    assert.equal(reply.data.code, code)
    assert.match(String(reply.data.message), message)
    assert.equal((await client.ask({ type: 'state' })).data.episode_id, 'kept')
  })
}

test('/ws puts the same error items in a VALIDATION_ERROR as a 422 has', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  const action = await client.ask(step({ say: 5 }))
  assert.deepEqual(action.data.errors, [
    {
      type: 'string_type',
      loc: ['say'],
      msg: 'Input should be a valid string',
      input: 5,
      url: 'https://errors.pydantic.dev/2.12/v/string_type',
    },
  ])
  const frame = await client.ask({ type: 'reset', data: null, extra: 1 })
  assert.deepEqual(
    (frame.data.errors as { type: string; loc: unknown }[]).map(({ type, loc }) => [type, loc]),
    [
      ['dict_type', ['data']],
      ['extra_forbidden', ['extra']],
    ],
  )
})

for (const type of ['step', 'state']) {
  test(`/ws ${type} before a reset is an EXECUTION_ERROR that says what to do`, async t => {
    const { url } = await listen(t)
    const client = await WireClient.open(t, `${url}/ws`)
    const reply = await client.ask(type === 'step' ? step() : { type })
    assert.equal(reply.data.code, 'EXECUTION_ERROR')
    assert.equal(reply.data.message, 'Environment not initialized. Call reset() first.')
  })
}

for (const [name, frame] of [
  ['an array', '[1]'],
  ['a number', '5'],
  ['null', 'null'],
  ['a string', '"reset"'],
  ['a binary frame', Buffer.from('{"type":"state"}')],
] as const) {
  test(`/ws ends the session with SESSION_ERROR on ${name}`, async t => {
    const { url, sessions } = await listen(t)
    const client = await WireClient.open(t, `${url}/ws`)
    const reply = await client.ask(frame)
    assert.equal(reply.data.code, 'SESSION_ERROR')
    assert.equal((await client.ended).code, 1000)
    assert.equal(sessions.active, 0)
  })
}

test('/ws sends CAPACITY_REACHED unprompted, then closes 1000', async t => {
  const { url } = await listen(t, { capacity: 1 })
  const first = await WireClient.open(t, `${url}/ws`)
  const second = await WireClient.open(t, `${url}/ws`)
  const refusal = await second.next()
  assert.deepEqual(refusal.data, {
    message: 'Server at capacity: 1/1 sessions active. Cannot accept new connections.',
    code: 'CAPACITY_REACHED',
    active_sessions: 1,
    max_sessions: 1,
  })
  second.send({ type: 'reset' })
  assert.equal((await second.ended).code, 1000)
  first.send({ type: 'close' })
  await first.ended
  const third = await WireClient.open(t, `${url}/ws`)
  assert.equal((await third.ask({ type: 'reset' })).type, 'observation')
})

test('/ws closes a refused socket also when the client stays silent', async t => {
  const { url } = await listen(t, { capacity: 1 })
  await WireClient.open(t, `${url}/ws`)
  const second = await WireClient.open(t, `${url}/ws`)
  assert.equal((await second.ended).code, 1000)
})

test('/ws answers pipelined frames in order', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  client.send({ type: 'reset' })
  for (let index = 0; index < 500; index += 1) client.send(step({ say: String(index) }))
  assert.equal((await client.next()).type, 'observation')
  for (let index = 0; index < 500; index += 1) {
    const { observation } = (await client.next()).data as { observation: { said: string; steps: number } }
    assert.deepEqual([observation.said, observation.steps], [String(index), index + 1])
  }
})

test('/ws frees the slot and the episode when the peer disconnects while a step runs', async t => {
  const { url, sessions, probe } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset', data: { episode_id: 'left' } })
  const session = sessions.find('left')
  client.send(step({ mode: 'wait' }))
  await probe.gate.reached
  const closed = new Promise(resolve => session?.onClose(resolve))
  client.socket.terminate()
  assert.equal(await closed, 'client')
  assert.equal(sessions.active, 0)
  assert.deepEqual(probe.closed, ['left'])
  probe.gate.open()
})

test('/ws sends NaN as null and lone surrogates as U+FFFD', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset' })
  const odd = await client.ask('{"type":"step","data":{"say":"a\\ud800b","mode":"nan"}}')
  const { observation } = odd.data as { observation: Record<string, unknown> }
  assert.deepEqual([observation.said, observation.value, observation.low], ['a\ufffdb', null, null])
})
