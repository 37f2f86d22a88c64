import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { listen } from './service.ts'

type Shown = { observation: { said: string; steps: number }; metadata: { episode_id: string } }
type Result = { content: { text: string }[]; structuredContent?: Shown; isError?: boolean }

async function connect(t: TestContext, url: string) {
  const transport = new StreamableHTTPClientTransport(new URL(url))
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport as Transport)
  t.after(() => client.close())
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    (await client.callTool({ name, arguments: args })) as unknown as Result
  return { client, transport, call }
}

test('an MCP client connects, lists the actions as tools and calls them in one episode', async t => {
  const { url, sessions } = await listen(t)
  const { client, call } = await connect(t, `${url}/probe/mcp`)
  assert.equal(client.getServerVersion()?.name, 'probe_env')
  const { tools } = await client.listTools()
  assert.deepEqual(
    tools.map(tool => [tool.name, tool.inputSchema.type]),
    [
      ['say', 'object'],
      ['reset_episode', 'object'],
    ],
  )
  const first = await call('say', { text: 'hi' })
  assert.deepEqual(JSON.parse(first.content[0]?.text ?? ''), first.structuredContent)
  assert.equal(first.structuredContent?.observation.said, 'hi')
  const second = await call('say', { text: 'hi' })
  assert.equal(second.structuredContent?.observation.steps, 2)
  assert.equal(sessions.active, 1)
})

test('reset_episode starts another episode in the same connection', async t => {
  const { url, probe, sessions } = await listen(t)
  const { call } = await connect(t, `${url}/mcp`)
  await call('say', { text: 'x' })
  const reset = await call('reset_episode', { episode_id: 'second' })
  assert.equal(reset.structuredContent?.metadata.episode_id, 'second')
  assert.deepEqual([probe.resets.length, sessions.active], [2, 1])
})

test('wrong arguments are a result for the model, an unknown tool and a broken one are errors', async t => {
  const { url } = await listen(t)
  const { call } = await connect(t, `${url}/mcp`)
  for (const [name, args] of [
    ['say', {}],
    ['reset_episode', { seed: 'x' }],
  ] as const) {
    const refused = await call(name, args)
    assert.equal(refused.isError, true)
    assert.match(refused.content[0]?.text ?? '', /^Invalid arguments: (text|seed): /)
  }
  await assert.rejects(call('fly'), { code: -32602 })
  await assert.rejects(call('say', { text: 'x', mode: 'reject' }), /rejected later/)
  assert.equal((await call('say', { text: 'alive' })).isError, undefined)
})

test('ending the MCP session frees its slot', async t => {
  const { url, sessions } = await listen(t)
  const { transport } = await connect(t, `${url}/mcp`)
  assert.equal(sessions.active, 1)
  await transport.terminateSession()
  assert.equal(sessions.active, 0)
})

test('an MCP client of a full server is told the numbers', async t => {
  const { url } = await listen(t, { capacity: 1 })
  await connect(t, `${url}/mcp`)
  await assert.rejects(connect(t, `${url}/mcp`), { code: -32000, data: { active_sessions: 1, max_sessions: 1 } })
})

test('an MCP connection that was idle too long is gone, and its client is told to start again', async t => {
  const { url, sessions } = await listen(t, { idleMs: 40 })
  const { transport, client } = await connect(t, `${url}/mcp`)
  const session = sessions.find(transport.sessionId ?? '')
  assert.equal(await new Promise(resolve => session?.onClose(resolve)), 'idle')
  await assert.rejects(client.listTools(), /Session not found/)
})

test('closing the app ends MCP connections, their event streams too', async t => {
  const { app, url, sessions } = await listen(t)
  await connect(t, `${url}/mcp`)
  sessions.close()
  await app.close()
  assert.equal(sessions.active, 0)
})

const EVENTS = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

test('a request of an unknown MCP session is 404, one without a session gets the plain JSON-RPC', async t => {
  const { url } = await listen(t)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const unknown = await fetch(`${url}/mcp`, { method: 'POST', headers: { ...EVENTS, 'mcp-session-id': 'x' }, body })
  assert.equal(unknown.status, 404)
  const plain = await fetch(`${url}/mcp`, { method: 'POST', headers: EVENTS, body })
  assert.equal(plain.status, 200)
  assert.equal(((await plain.json()) as { result: { tools: unknown[] } }).result.tools.length, 1)
  const stream = await fetch(`${url}/mcp`, { headers: EVENTS })
  assert.equal(stream.status, 400)
  const malformed = await fetch(`${url}/mcp`, { method: 'POST', headers: EVENTS, body: '{' })
  assert.equal(malformed.status, 400)
})

test('a handshake that the SDK refuses leaves no session behind', async t => {
  const { url, sessions } = await listen(t)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })
  const reply = await fetch(`${url}/mcp`, { method: 'POST', headers: { ...EVENTS, accept: 'text/event-stream' }, body })
  assert.ok(reply.status >= 400)
  assert.equal(sessions.active, 0)
})
