import assert from 'node:assert/strict'
import test from 'node:test'
import { Busy, GradingBudget, InfraFailure } from '../../src/environment/grading-attempts.ts'

const LONG_MS = 60_000
const never = () => Promise.withResolvers<never>().promise

/** Work that fails with these errors, one after the other, and then succeeds. */
function failing(errors: Error[]) {
  const calls = { count: 0 }
  const work = async () => {
    const error = errors[calls.count]
    calls.count += 1
    if (error !== undefined) throw error
    return 'done'
  }
  return { work, calls }
}

test('attempt() tries again what failed for reasons of ours, twice in all', async () => {
  const budget = new GradingBudget(LONG_MS)
  assert.equal(await budget.attempt(failing([new InfraFailure('failure 1')]).work), 'done')
  assert.equal(await budget.attempt(failing([new InfraFailure('failure 2')]).work), 'done')
  await assert.rejects(budget.attempt(failing([new InfraFailure('failure 3')]).work), /failure 3/)
})

test('attempt() does not repeat what would fail again, nor what is no failure of ours', async () => {
  for (const error of [new InfraFailure('closed', { lasting: true }), new Busy(), new TypeError('a mistake')]) {
    const { work, calls } = failing([error])
    await assert.rejects(new GradingBudget(LONG_MS).attempt(work), error)
    assert.equal(calls.count, 1)
  }
})

test('attempt() begins nothing once the time is over', async () => {
  const { work, calls } = failing([])
  await assert.rejects(new GradingBudget(0).attempt(work), Busy)
  assert.equal(calls.count, 0)
})

test('within() waits no longer than the budget lasts', async () => {
  await assert.rejects(new GradingBudget(10).within(never()), Busy)
  assert.equal(await new GradingBudget(LONG_MS).within(Promise.resolve('soon')), 'soon')
  await assert.rejects(new GradingBudget(LONG_MS).within(Promise.reject(new Error('its own'))), /its own/)
})

test('what within() no longer waits for may fail later without harm', async () => {
  const { promise, reject } = Promise.withResolvers<never>()
  await assert.rejects(new GradingBudget(5).within(promise), Busy)
  reject(new Error('nobody listens'))
  // An unhandled rejection would end the process before this timer.
  await new Promise(resolve => setTimeout(resolve, 10))
})
