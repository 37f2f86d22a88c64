import assert from 'node:assert/strict'
import test from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { GradingSlots } from '../../src/environment/grading-slots.ts'

const LONG_MS = 60_000

/** Work that ends when it is told to, and notes its beginning. */
function openEnded(begun: string[], name: string) {
  const { promise, resolve } = Promise.withResolvers<string>()
  const work = () => {
    begun.push(name)
    return promise
  }
  return { work, end: () => resolve(name) }
}

test('GradingSlots run no more at once than there are slots', async () => {
  const slots = new GradingSlots(2)
  const begun: string[] = []
  const jobs = ['a', 'b', 'c'].map(name => openEnded(begun, name))
  const results = jobs.map(({ work }) => slots.run(slots.ticket(), LONG_MS, work))
  await turn()
  assert.deepEqual(begun, ['a', 'b'])
  jobs[1]?.end()
  await results[1]
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c'])
  for (const { end } of jobs) end()
  assert.deepEqual(await Promise.all(results), ['a', 'b', 'c'])
})

test('the lower ticket goes first, whenever its work came', async () => {
  const slots = new GradingSlots(1)
  const [first, second, third] = [slots.ticket(), slots.ticket(), slots.ticket()]
  const begun: string[] = []
  const running = openEnded(begun, 'running')
  const results = [slots.run(second, LONG_MS, running.work)]
  for (const [name, ticket] of [
    ['third', third],
    ['second', second],
    ['first', first],
    ['first again', first],
  ] as const) {
    results.push(
      slots.run(ticket, LONG_MS, async () => {
        begun.push(name)
        return name
      }),
    )
  }
  running.end()
  await Promise.all(results)
  assert.deepEqual(begun, ['running', 'first', 'first again', 'second', 'third'])
})

test('who waits too long leaves the line without a result, and the next one is served', async () => {
  const slots = new GradingSlots(1)
  const begun: string[] = []
  const running = openEnded(begun, 'running')
  const first = slots.run(slots.ticket(), LONG_MS, running.work)
  const hurried = slots.run(slots.ticket(), 0, openEnded(begun, 'hurried').work)
  const patient = openEnded(begun, 'patient')
  const last = slots.run(slots.ticket(), LONG_MS, patient.work)
  assert.equal(await hurried, null)
  running.end()
  patient.end()
  assert.deepEqual(await Promise.all([first, last]), ['running', 'patient'])
  assert.deepEqual(begun, ['running', 'patient'])
})

test('work that fails gives its slot back', async () => {
  const slots = new GradingSlots(1)
  await assert.rejects(
    slots.run(slots.ticket(), LONG_MS, () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  assert.equal(await slots.run(slots.ticket(), LONG_MS, async () => 'next'), 'next')
})
