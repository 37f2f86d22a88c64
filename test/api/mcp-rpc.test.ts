import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { build, listen } from './service.ts'
import { WireClient } from './wire-client.ts'

type Called = {
  content: { type: string; text: string }[]
  structuredContent: { metadata: { episode_id: string } }
  data: { said: string; steps: number }
}
type Answer = {
  jsonrpc: string
  id: unknown
  result?: Record<string, unknown>
  error?: { code: number; message: string; data: unknown }
}

async function send(app: FastifyInstance, payload: string | object): Promise<Answer> {
  const reply = await app.inject({
    method: 'POST',
    url: '/mcp',
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
    headers: { 'content-type': 'application/json' },
  })
  assert.equal(reply.statusCode, 200)
  assert.equal(reply.headers['content-type'], 'application/json')
  return reply.json()
}

const call = (method: string, params: object = {}, id: unknown = 1) => ({ jsonrpc: '2.0', method, params, id })
const say = (text: string, rest: object = {}) => call('tools/call', { name: 'say', arguments: { text }, ...rest })

/** The result of a `tools/call`. */
const calledIn = ({ result }: Answer): Called => (result ?? assert.fail('no result')) as Called

const refused: [name: string, payload: string | object, code: number, id: unknown, message: RegExp][] = [
  ['text that is not JSON', '{', -32700, null, /^Parse error$/],
  ['an empty body', '', -32700, null, /^Parse error$/],
  ['a batch', [call('tools/list')], -32700, null, /^Parse error$/],
  ['a scalar', '5', -32700, null, /^Parse error$/],
  ['an empty object', {}, -32600, null, /^Invalid request: jsonrpc: Field required; method: Field required$/],
  ['params as array', call('tools/list', []), -32600, null, /^Invalid request: params/],
  ['another key', { ...call('tools/list'), extra: 1 }, -32600, null, /^Invalid request: extra/],
  ['an id that is no id', call('tools/list', {}, 1.5), -32600, null, /^Invalid request: id/],
  ['another version', { ...call('tools/list'), jsonrpc: '1.0' }, -32600, null, /^Invalid request: jsonrpc/],
  ['initialize', call('initialize'), -32601, 1, /^Method not found: initialize$/],
  ['ping', call('ping', {}, 'x'), -32601, 'x', /^Method not found: ping$/],
  ['a name from Object.prototype', call('constructor'), -32601, 1, /^Method not found/],
  ['a call without a name', call('tools/call'), -32602, 1, /^Missing 'name' in params$/],
  ['an unknown tool', call('tools/call', { name: 'fly' }), -32602, 1, /^Tool not found: fly/],
  ['arguments of the wrong type', call('tools/call', { name: 'say', arguments: [] }), -32602, 1, /must be an object/],
  [
    'wrong arguments',
    call('tools/call', { name: 'say', arguments: { x: 1 } }),
    -32602,
    1,
    /text: Field required; x: Extra/,
  ],
  ['an unknown session', say('x', { session_id: 'none' }), -32602, 1, /^Unknown session_id: none$/],
  ['a list for an unknown session', call('tools/list', { session_id: 'none' }), -32602, 1, /^Unknown session_id/],
  ['closing nothing', call('openenv/session/close'), -32602, 1, /'session_id' is required/],
  ['closing the unknown', call('openenv/session/close', { session_id: 'none' }), -32602, 1, /^Unknown session_id/],
  ['a tool that throws', say('x', { arguments: { text: 'x', mode: 'throw' } }), -32603, 1, /^thrown at once$/],
  ['a tool that rejects', say('x', { arguments: { text: 'x', mode: 'reject' } }), -32603, 1, /^rejected later$/],
]
for (const [name, payload, code, id, message] of refused) {
  test(`POST /mcp answers ${name} with ${code}`, async t => {
    const { app, sessions } = await build(t)
    const { jsonrpc, error, ...rest } = await send(app, payload)
    assert.deepEqual([jsonrpc, rest, error?.code], ['2.0', { id }, code])
    assert.match(error?.message ?? '', message)
    assert.ok(error !== undefined && 'data' in error)
    assert.equal(sessions.active, 0)
  })
}

test('tools/list shows the actions of an episode', async t => {
  const { app } = await build(t)
  const { result } = await send(app, { jsonrpc: '2.0', method: 'tools/list' })
  const tools = result?.tools as { name: string; description: string; inputSchema: Record<string, unknown> }[]
  assert.deepEqual(
    tools.map(({ name, description, inputSchema }) => [name, description, inputSchema.type]),
    [['say', 'Echo a text.', 'object']],
  )
})

test('tools/call without a session runs in a fresh episode that ends with the call', async t => {
  const { app, sessions, probe } = await build(t)
  const result = calledIn(await send(app, say('hello')))
  assert.deepEqual(Object.keys(result), ['content', 'structuredContent', 'data', 'isError'])
  assert.deepEqual([result.data.said, result.data.steps], ['hello', 1])
  assert.deepEqual(JSON.parse(result.content[0]?.text ?? ''), result.structuredContent)
  assert.deepEqual([sessions.active, probe.resets.length, probe.closed.length], [0, 1, 1])
})

test('a session opened over HTTP keeps its episode between calls, until it is closed', async t => {
  const { app, sessions } = await build(t)
  const created = await send(app, call('openenv/session/create'))
  const id = created.result?.session_id
  assert.deepEqual((await send(app, call('tools/list', { session_id: id }))).error, undefined)
  for (const steps of [1, 2]) {
    assert.equal(calledIn(await send(app, say('x', { session_id: id }))).data.steps, steps)
  }
  const closed = await send(app, call('openenv/session/close', { session_id: id }))
  assert.deepEqual(closed.result, { session_id: id, closed: true })
  assert.equal(sessions.active, 0)
})

test('a session that its client forgot is closed when idle', async t => {
  const { app, sessions } = await build(t, { idleMs: 40 })
  const { result } = await send(app, call('openenv/session/create'))
  const session = sessions.find(String(result?.session_id))
  assert.equal(await new Promise(resolve => session?.onClose(resolve)), 'idle')
})

test('openenv/session/create at capacity is -32000 with the numbers', async t => {
  const { app } = await build(t, { capacity: 1 })
  await send(app, call('openenv/session/create'))
  for (const request of [call('openenv/session/create'), say('x')]) {
    const { error } = await send(app, request)
    assert.deepEqual([error?.code, error?.data], [-32000, { active_sessions: 1, max_sessions: 1 }])
  }
})

test('ids of episodes and sessions of other environments are no session ids', async t => {
  const { app } = await build(t)
  await app.inject({ method: 'POST', url: '/reset', payload: { episode_id: 'mine' } })
  assert.equal((await send(app, call('openenv/session/close', { session_id: 'mine' }))).error?.code, -32602)
})

test('WebSocket /mcp serves requests on a session of its own', async t => {
  const { url, sessions } = await listen(t)
  const client = await WireClient.open(t, `${url}/probe/mcp`)
  const ask = async (frame: unknown) => (await client.ask(frame)) as unknown as Answer
  const own = (await ask(call('openenv/session/create'))).result?.session_id
  assert.deepEqual([typeof own, sessions.active], ['string', 1])
  assert.equal((await ask(call('openenv/session/close', { session_id: own }))).error?.code, -32600)
  assert.equal(calledIn(await ask(say('x'))).data.steps, 1)
  assert.equal(calledIn(await ask(say('x'))).data.steps, 2)
  assert.deepEqual([(await ask('{')).error?.code, (await ask({})).error?.code], [-32700, -32600])
  assert.equal((await ask([])).error?.code, -32000)
  assert.equal((await client.ended).code, 1000)
  assert.equal(sessions.active, 0)
})

test('WebSocket /mcp at capacity is one -32000 frame, then a close', async t => {
  const { url } = await listen(t, { capacity: 1 })
  await WireClient.open(t, `${url}/mcp`)
  const second = await WireClient.open(t, `${url}/mcp`)
  const { error } = (await second.next()) as unknown as Answer
  assert.deepEqual([error?.code, error?.data], [-32000, { active_sessions: 1, max_sessions: 1 }])
  assert.equal((await second.ended).code, 1000)
})

test('an mcp frame on /ws works on the episode of that socket', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset', data: { episode_id: 'one' } })
  const reply = await client.ask({ type: 'mcp', data: say('x') })
  assert.equal(reply.type, 'mcp')
  const { structuredContent } = calledIn(reply.data as unknown as Answer)
  assert.equal(structuredContent.metadata.episode_id, 'one')
  assert.equal((await client.ask({ type: 'state' })).data.step_count, 1)
  const invalid = await client.ask({ type: 'mcp', data: {} })
  assert.deepEqual([invalid.type, (invalid.data as unknown as Answer).error?.code], ['mcp', -32600])
  assert.equal((await client.ask({ type: 'mcp' })).data.code, 'VALIDATION_ERROR')
})

test('step frames of tool clients list and call tools', async t => {
  const { url } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws`)
  const step = async (data: object) =>
    (await client.ask({ type: 'step', data })).data.observation as Record<string, unknown>
  const { tools } = await step({ type: 'list_tools' })
  assert.deepEqual(
    (tools as { name: string; input_schema: { type: string } }[]).map(tool => [tool.name, tool.input_schema.type]),
    [['say', 'object']],
  )
  const called = await step({ type: 'call_tool', tool_name: 'say', arguments: { text: 'hi' } })
  assert.deepEqual([called.tool_name, called.error], ['say', null])
  assert.equal((called.result as { data: { said: string } }).data.said, 'hi')
  for (const [data, type] of [
    [{ type: 'call_tool', tool_name: 'fly', arguments: {} }, 'tool_not_found'],
    [{ type: 'call_tool', tool_name: 'say', arguments: {} }, 'invalid_args'],
    [{ type: 'call_tool', tool_name: 'say', arguments: 5 }, 'invalid_args'],
    [{ type: 'call_tool', tool_name: 'say', arguments: { text: 'x', mode: 'reject' } }, 'execution_error'],
  ] as const) {
    const failed = await step(data)
    assert.deepEqual([failed.result, (failed.error as { error_type: string }).error_type], [null, type])
  }
})

test('/ws?session_id= attaches to a session opened over HTTP, and only one socket may', async t => {
  const { app, url, sessions } = await listen(t)
  const id = (await send(app, call('openenv/session/create'))).result?.session_id
  const client = await WireClient.open(t, `${url}/ws?session_id=${id}`)
  await client.ask({ type: 'reset', data: { episode_id: 'both' } })
  assert.equal(sessions.active, 1)
  const called = calledIn(await send(app, say('x', { session_id: id })))
  assert.equal(called.structuredContent.metadata.episode_id, 'both')

  const second = await WireClient.open(t, `${url}/ws?session_id=${id}`)
  const refusal = await second.next()
  assert.deepEqual(
    [refusal.data.code, refusal.data.message],
    ['SESSION_ERROR', `Session ${id} already has an attached WebSocket`],
  )
  client.send({ type: 'close' })
  await client.ended
  assert.equal(sessions.active, 1)
  assert.equal(calledIn(await send(app, say('x', { session_id: id }))).data.steps, 2)
})

test('/ws?session_id= of an unknown session is refused and closed', async t => {
  const { url, sessions } = await listen(t)
  const client = await WireClient.open(t, `${url}/ws?session_id=none`)
  const { data } = await client.next()
  assert.deepEqual([data.code, data.message], ['SESSION_ERROR', 'Unknown session_id: none'])
  assert.equal((await client.ended).code, 1000)
  assert.equal(sessions.active, 0)
})

test('closing a session over HTTP while a socket is attached waits for the socket', async t => {
  const { app, url, sessions } = await listen(t)
  const id = (await send(app, call('openenv/session/create'))).result?.session_id
  const client = await WireClient.open(t, `${url}/ws?session_id=${id}`)
  const close = call('openenv/session/close', { session_id: id })
  assert.deepEqual((await send(app, close)).result, { session_id: id, closed: false, closing: true })
  assert.equal((await client.ask({ type: 'reset' })).type, 'observation')
  client.send({ type: 'close' })
  await client.ended
  assert.equal(sessions.active, 0)
  assert.equal((await send(app, close)).error?.code, -32602)
})
