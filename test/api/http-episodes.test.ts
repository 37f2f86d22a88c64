import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { CapacityError, ServiceError } from '../../src/errors.ts'
import { build, listen } from './service.ts'

type Reply = { status: number; headers: Record<string, unknown>; body: Record<string, unknown> }

async function post(
  app: FastifyInstance,
  url: string,
  payload: unknown = {},
  headers: Record<string, string> = {},
): Promise<Reply> {
  const reply = await app.inject({
    method: 'POST',
    url,
    payload: JSON.stringify(payload),
    headers: { 'content-type': 'application/json', ...headers },
  })
  return { status: reply.statusCode, headers: reply.headers, body: reply.json() }
}

const step = (say: string, rest: object = {}) => ({ action: { say }, ...rest })
const idOf = ({ body }: Reply) => (body.metadata as { episode_id: string }).episode_id
const said = ({ body }: Reply) => (body.observation as { said: string }).said

test('/reset then /step work over plain HTTP, with the id in metadata, header and cookie', async t => {
  const { app } = await build(t)
  const reset = await post(app, '/reset', { seed: '7' })
  assert.equal(reset.status, 200)
  assert.equal(reset.headers['content-type'], 'application/json')
  assert.deepEqual(Object.keys(reset.body), ['observation', 'reward', 'done', 'metadata'])
  assert.deepEqual((reset.body.observation as { metadata: unknown }).metadata, reset.body.metadata)
  assert.equal(reset.headers['x-episode-id'], idOf(reset))
  assert.match(String(reset.headers['set-cookie']), new RegExp(`^forkyard_probe_episode=${idOf(reset)}; Path=/`))
  const stepped = await post(app, '/step', step('hi', { episode_id: idOf(reset) }))
  assert.deepEqual([stepped.status, said(stepped), stepped.body.reward], [200, 'hi', 0.5])
})

test('/reset takes no body, an empty one, null and {} as defaults', async t => {
  const { app, probe } = await build(t)
  const type = { 'content-type': 'application/json' }
  assert.equal((await app.inject({ method: 'POST', url: '/reset' })).statusCode, 200)
  for (const payload of ['', 'null', '{}']) {
    assert.equal((await app.inject({ method: 'POST', url: '/reset', payload, headers: type })).statusCode, 200)
  }
  assert.equal(probe.resets.length, 4)
})

test('/step finds its episode by body, action, header and cookie, in this order, then by being the only one', async t => {
  const { app } = await build(t)
  await post(app, '/reset', { episode_id: 'a' })
  assert.equal(idOf(await post(app, '/step', step('x'))), 'a')
  await post(app, '/reset', { episode_id: 'b' })
  const header = { 'x-episode-id': 'a' }
  const cookie = { cookie: 'other=1; forkyard_probe_episode=b' }
  assert.equal(idOf(await post(app, '/step', step('x', { episode_id: 'b' }), header)), 'b')
  assert.equal(idOf(await post(app, '/step', step('x'), { ...header, ...cookie })), 'a')
  assert.equal(idOf(await post(app, '/step', step('x'), cookie)), 'b')
})

test('/step names the field episode_id when it is not clear which episode is meant', async t => {
  const { app } = await build(t)
  for (const expected of [/no HTTP episode is live/, /2 HTTP episodes are live/]) {
    const reply = await post(app, '/step', step('x'))
    assert.equal(reply.status, 422)
    const [item] = reply.body.detail as { type: string; loc: string[]; msg: string }[]
    assert.deepEqual([item?.type, item?.loc], ['missing', ['body', 'episode_id']])
    assert.match(item?.msg ?? '', expected)
    await post(app, '/reset')
    await post(app, '/reset')
  }
})

test('/step answers 404 for an id that is not live', async t => {
  const { app } = await build(t)
  await post(app, '/reset')
  const reply = await post(app, '/step', step('x', { episode_id: 'gone' }))
  assert.equal(reply.status, 404)
  assert.match(String(reply.body.detail), /^Episode 'gone' not found/)
})

test('/reset with the id of a live episode replaces it and takes no second slot', async t => {
  const { app, sessions, probe } = await build(t)
  await post(app, '/reset', { episode_id: 'same' })
  await post(app, '/step', step('x'))
  const again = await post(app, '/reset', { episode_id: 'same' })
  assert.deepEqual([sessions.active, probe.closed, idOf(again)], [1, ['same'], 'same'])
  assert.equal(idOf(await post(app, '/reset', {}, { 'x-episode-id': 'same' })), 'same')
  assert.equal(sessions.active, 1)
})

test('/reset does not replace the episode of a cookie', async t => {
  const { app, sessions } = await build(t)
  await post(app, '/reset', { episode_id: 'mine' })
  await post(app, '/reset', {}, { cookie: 'forkyard_probe_episode=mine' })
  assert.equal(sessions.active, 2)
})

test('/reset that fails gives its slot back', async t => {
  const { app, sessions } = await build(t)
  const reply = await app.inject({ method: 'POST', url: '/reset', payload: { fail: true } })
  assert.equal(reply.statusCode, 500)
  assert.equal(reply.headers['content-type'], 'text/plain; charset=utf-8')
  assert.equal(reply.body, 'Internal Server Error')
  assert.equal(sessions.active, 0)
})

test('an id of odd characters survives header and cookie', async t => {
  const { app } = await build(t)
  const id = 'naïve\r\n; id=%41'
  const reset = await post(app, '/reset', { episode_id: id })
  await post(app, '/reset')
  const header = { 'x-episode-id': String(reset.headers['x-episode-id']) }
  assert.equal(idOf(await post(app, '/step', step('x'), header)), id)
  const cookie = { cookie: String(reset.headers['set-cookie']).split(';')[0] ?? '' }
  assert.equal(idOf(await post(app, '/step', step('x'), cookie)), id)
})

test('timeout_s reaches the environment as a number of seconds', async t => {
  const { app, probe } = await build(t)
  await post(app, '/reset')
  for (const timeout of [1.5, '2', null, undefined]) await post(app, '/step', step('x', { timeout_s: timeout }))
  assert.deepEqual(probe.limits, [1.5, 2, undefined, undefined])
})

test('/state answers base fields, all of them with full=true, and a fresh state without any episode', async t => {
  const { app } = await build(t)
  const state = async (query = '') => (await app.inject(`/state${query}`)).json()
  assert.deepEqual(await state(), { episode_id: null, step_count: 0 })
  await post(app, '/reset', { episode_id: 'a', context: 'c' })
  await post(app, '/step', step('x'))
  assert.deepEqual(await state(), { episode_id: 'a', step_count: 1 })
  assert.deepEqual(await state('?episode_id=a&full=true'), { episode_id: 'a', step_count: 1, context: 'c' })
  assert.equal((await app.inject('/state?episode_id=b')).statusCode, 404)
})

test('DELETE /episodes/{id} closes the episode', async t => {
  const { app, sessions, probe } = await build(t)
  await post(app, '/reset', { episode_id: 'a b' })
  const reply = await app.inject({ method: 'DELETE', url: '/episodes/a%20b' })
  assert.deepEqual(reply.json(), { episode_id: 'a b', closed: true })
  assert.deepEqual([sessions.active, probe.closed], [0, ['a b']])
  assert.equal((await app.inject({ method: 'DELETE', url: '/episodes/a%20b' })).statusCode, 404)
})

test('a full server answers 503 with the numbers', async t => {
  const { app } = await build(t, { capacity: 1 })
  await post(app, '/reset')
  const reply = await post(app, '/reset')
  assert.deepEqual(
    [reply.status, reply.headers['retry-after'], reply.body],
    [
      503,
      '1',
      {
        detail: new CapacityError(1, 1).message,
        code: 'capacity_reached',
        retry: true,
        active_sessions: 1,
        max_sessions: 1,
      },
    ],
  )
})

test('a failure of the service has its status, code and Retry-After', async t => {
  const { app, sessions } = await build(t)
  t.mock.method(sessions, 'open', () => {
    throw new ServiceError('queue_full', 'too many wait')
  })
  const reply = await post(app, '/reset')
  assert.deepEqual(
    [reply.status, reply.headers['retry-after'], reply.body],
    [503, '1', { detail: 'too many wait', code: 'queue_full', retry: true }],
  )
})

for (const mode of ['throw', 'reject', 'cycle']) {
  test(`/step answers an environment that does ${mode} with 500 in plain text, and goes on`, async t => {
    const { app } = await build(t)
    await post(app, '/reset')
    const failed = await app.inject({ method: 'POST', url: '/step', payload: { action: { mode } } })
    assert.deepEqual([failed.statusCode, failed.body], [500, 'Internal Server Error'])
    assert.equal((await post(app, '/step', step('alive'))).status, 200)
  })
}

test('/step sends NaN as null and lone surrogates as U+FFFD', async t => {
  const { app } = await build(t)
  await post(app, '/reset')
  const reply = await app.inject({
    method: 'POST',
    url: '/step',
    payload: '{"action":{"say":"\\udc00 \\\\ud800","mode":"nan"}}',
    headers: { 'content-type': 'application/json' },
  })
  const { observation } = reply.json()
  assert.deepEqual([observation.said, observation.value, observation.low], ['\ufffd \\ud800', null, null])
})

test('two steps of one episode at once are answered in order', async t => {
  const { app, probe } = await build(t)
  await post(app, '/reset')
  const first = post(app, '/step', { action: { say: '1', mode: 'wait' } })
  await probe.gate.reached
  const second = post(app, '/step', step('2'))
  probe.gate.open()
  const replies = await Promise.all([first, second])
  assert.deepEqual(
    replies.map(({ body }) => (body.observation as { steps: number }).steps),
    [1, 2],
  )
})

test('an episode outlives a client that disconnects while its step runs', async t => {
  const { app, url, probe } = await listen(t)
  await post(app, '/reset', { episode_id: 'kept' })
  const call = httpRequest(`${url}/step`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  call.on('error', () => undefined)
  call.end(JSON.stringify({ action: { mode: 'wait' } }))
  await probe.gate.reached
  call.destroy()
  probe.gate.open()
  const next = await post(app, '/step', step('still here'))
  assert.deepEqual([said(next), (next.body.observation as { steps: number }).steps], ['still here', 2])
})

test('an idle HTTP episode is closed and its id is not found afterwards', async t => {
  const { app, sessions } = await build(t, { idleMs: 40 })
  await post(app, '/reset', { episode_id: 'idle' })
  const session = sessions.find('idle')
  assert.equal(await new Promise(resolve => session?.onClose(resolve)), 'idle')
  assert.equal((await post(app, '/step', step('x', { episode_id: 'idle' }))).status, 404)
})
