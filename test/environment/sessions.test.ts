import assert from 'node:assert/strict'
import test from 'node:test'
import { SessionTable, type SessionTableOptions } from '../../src/environment/sessions.ts'
import { CounterEnvironment } from '../fixtures/counter-environment.ts'

function openTable(options: Partial<SessionTableOptions> = {}) {
  const counter = new CounterEnvironment()
  const table = new SessionTable({ environments: [counter], capacity: 2, idleMs: 0, lifetimeMs: 0, ...options })
  return { counter, table, [Symbol.dispose]: () => table.close() }
}

const closing = (session: ReturnType<SessionTable['open']>) =>
  new Promise<string>(resolve => session.onClose(why => resolve(why)))

test('open() counts slots and refuses one too many', () => {
  using opened = openTable()
  const { table } = opened
  table.open('counter')
  table.open('counter')
  assert.equal(table.active, 2)
  assert.throws(() => table.open('counter'), { code: 'capacity_reached', activeSessions: 2, maxSessions: 2 })
})

test('open() lets a yielding session whose episode is over make room, and no other', async () => {
  using opened = openTable()
  const { table } = opened
  const socket = table.open('counter')
  const http = table.open('counter', { yields: true })
  await socket.reset({ episode_id: 'socket' })
  await http.reset({ episode_id: 'http' })
  await socket.step({ end: true }, {})
  assert.throws(() => table.open('counter'), { code: 'capacity_reached' })
  await http.step({ end: true }, {})
  table.open('counter')
  assert.equal(http.closed, 'evicted')
  assert.equal(socket.closed, null)
})

test('open() lets a yielding session make room again after its next reset only when that is over', async () => {
  using opened = openTable({ capacity: 1 })
  const { table } = opened
  const http = table.open('counter', { yields: true })
  await http.reset({ episode_id: 'one' })
  await http.step({ end: true }, {})
  await http.reset({ episode_id: 'two' })
  assert.throws(() => table.open('counter'), { code: 'capacity_reached' })
  assert.equal(http.closed, null)
})

test('close() of a session frees its slot once, however often it is called', () => {
  using opened = openTable()
  const { table } = opened
  const session = table.open('counter')
  session.close('client')
  session.close('idle')
  assert.equal(table.active, 0)
  assert.equal(session.closed, 'client')
  assert.equal(table.find(session.id), undefined)
})

test('open() takes no slot for an unknown environment', () => {
  using opened = openTable()
  assert.throws(() => opened.table.open('chess'), { code: 'invalid_request' })
  assert.equal(opened.table.active, 0)
})

test('step() and state() before a reset reject with not_reset', async () => {
  using opened = openTable()
  const session = opened.table.open('counter')
  const failure = { code: 'not_reset', message: 'Environment not initialized. Call reset() first.' }
  await assert.rejects(session.step({}, {}), failure)
  await assert.rejects(session.state(), failure)
  assert.equal(session.episodeId, null)
})

test('find() finds a session by its own id and by its current episode id', async () => {
  using opened = openTable()
  const session = opened.table.open('counter')
  await session.reset({ episode_id: 'one' })
  assert.equal(opened.table.find(session.id), session)
  assert.equal(opened.table.find('one'), session)
  await session.reset({ episode_id: 'two' })
  assert.equal(opened.table.find('one'), undefined)
  assert.equal(opened.table.find('two'), session)
})

test('find() gives the session reset last when two chose one episode id, and survives the close of the first', async () => {
  using opened = openTable()
  const first = opened.table.open('counter')
  const second = opened.table.open('counter')
  await first.reset({ episode_id: 'same' })
  await second.reset({ episode_id: 'same' })
  assert.equal(opened.table.find('same'), second)
  first.close('client')
  assert.equal(opened.table.find('same'), second)
})

test('reset() closes the previous episode', async () => {
  using opened = openTable()
  const session = opened.table.open('counter')
  await session.reset({ episode_id: 'one' })
  await session.reset({ episode_id: 'two' })
  assert.deepEqual(opened.counter.closed, ['one'])
})

test('reset() that fails keeps the slot and leaves no episode', async () => {
  using opened = openTable()
  const { table, counter } = opened
  const session = table.open('counter')
  await session.reset({ episode_id: 'one' })
  counter.failure = new Error('no worker')
  await assert.rejects(session.reset({ episode_id: 'two' }), counter.failure)
  assert.equal(table.active, 1)
  assert.equal(session.episodeId, null)
  assert.equal(table.find('one'), undefined)
  await assert.rejects(session.step({}, {}), { code: 'not_reset' })
  counter.failure = null
  await session.reset({ episode_id: 'three' })
  assert.equal(session.episodeId, 'three')
})

test('calls of one session run one at a time, in order, and a failing one does not stop the rest', async () => {
  using opened = openTable()
  const session = opened.table.open('counter')
  const settled = await Promise.allSettled([
    session.step({}, {}),
    session.reset({ episode_id: 'one' }),
    session.step({}, {}),
    session.step({ fail: true }, {}),
    session.step({}, {}),
    session.state(),
  ])
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  assert.equal(opened.counter.mostAtOnce, 1)
  assert.deepEqual(await session.state(), { episode_id: 'one', step_count: 2 })
})

test('close() while a step runs frees the slot at once, and refuses the step and what was queued', async () => {
  using opened = openTable()
  const { table, counter } = opened
  const session = table.open('counter')
  await session.reset({ episode_id: 'one' })
  const running = session.step({ hang: true }, {})
  const queued = session.step({}, {})
  await counter.hanging
  session.close('client')
  assert.equal(table.active, 0)
  assert.deepEqual(counter.closed, ['one'])
  await assert.rejects(running, { code: 'episode_not_found' })
  await assert.rejects(queued, { code: 'episode_not_found' })
})

test('close() while an episode opens closes that episode too', async () => {
  using opened = openTable()
  const { table, counter } = opened
  const gate = Promise.withResolvers<void>()
  counter.opening = gate.promise
  const session = table.open('counter')
  const rejected = assert.rejects(session.reset({ episode_id: 'late' }), { code: 'episode_not_found' })
  await Promise.resolve()
  assert.deepEqual(counter.opened, ['late'])
  session.close('client')
  gate.resolve()
  await rejected
  assert.deepEqual(counter.closed, ['late'])
  assert.equal(table.find('late'), undefined)
})

test('onClose() tells the reason, also to a listener that comes late', async () => {
  using opened = openTable()
  const session = opened.table.open('counter')
  const told = closing(session)
  session.close('client')
  assert.equal(await told, 'client')
  assert.equal(await closing(session), 'client')
})

test('the reaper closes an idle session and its episode', async () => {
  using opened = openTable({ idleMs: 60 })
  const session = opened.table.open('counter')
  await session.reset({ episode_id: 'one' })
  assert.equal(await held(closing(session)), 'idle')
  assert.equal(opened.table.active, 0)
  assert.deepEqual(opened.counter.closed, ['one'])
})

test('the reaper leaves a session alone while a step runs', async () => {
  using opened = openTable({ idleMs: 40 })
  const { table, counter } = opened
  const busy = table.open('counter')
  await busy.reset({ episode_id: 'one' })
  const running = busy.step({ hang: true }, {})
  const idle = table.open('counter')
  assert.equal(await held(closing(idle)), 'idle')
  assert.equal(busy.closed, null)
  counter.release()
  await running
  assert.equal(await held(closing(busy)), 'idle')
})

test('touch() keeps a session that makes no calls', async () => {
  using opened = openTable({ idleMs: 80 })
  const kept = opened.table.open('counter')
  const beat = setInterval(() => kept.touch(), 5)
  try {
    const idle = opened.table.open('counter')
    assert.equal(await held(closing(idle)), 'idle')
    assert.equal(kept.closed, null)
  } finally {
    clearInterval(beat)
  }
})

test('the reaper closes an episode at the end of its life, also while a step runs', async () => {
  using opened = openTable({ lifetimeMs: 60 })
  const session = opened.table.open('counter')
  await session.reset({ episode_id: 'one' })
  const running = session.step({ hang: true }, {})
  const refused = assert.rejects(running, { code: 'episode_not_found' })
  assert.equal(await held(closing(session)), 'lifetime')
  await refused
})

test('close() of the table closes every session, refuses new ones, and may be called twice', async () => {
  using opened = openTable()
  const { table, counter } = opened
  const session = table.open('counter')
  await session.reset({ episode_id: 'one' })
  const told = closing(session)
  table.close()
  table.close()
  assert.equal(await told, 'shutdown')
  assert.deepEqual(counter.closed, ['one'])
  assert.throws(() => table.open('counter'), { code: 'shutting_down' })
  await assert.rejects(session.step({}, {}), { code: 'shutting_down' })
})

/** The reaper's timer is unref'd, so waiting for it alone would let the process end. */
async function held<Value>(promise: Promise<Value>): Promise<Value> {
  const hold = setInterval(() => undefined, 1000)
  try {
    return await promise
  } finally {
    clearInterval(hold)
  }
}
