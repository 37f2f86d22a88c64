import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { focused, gated, type Rubric, score, sequential, weighted } from '../../src/reward/rubric.ts'

const always =
  (value: number, reason = String(value)): Rubric<unknown> =>
  () =>
    score(value, reason)

test('score() clamps to [0, 1] and turns NaN into 0', () => {
  assert.deepEqual(score(1.5, 'r'), { value: 1, reason: 'r' })
  assert.deepEqual(score(-1, 'r'), { value: 0, reason: 'r' })
  assert.deepEqual(score(Number.NaN, 'loss'), { value: 0, reason: 'not a number: loss' })
})

test('weighted() is the weighted mean and names each part in its reason', () => {
  const rubric = weighted({
    accuracy: { rubric: always(1, 'all right'), weight: 3 },
    speed: { rubric: always(0, 'too slow'), weight: 1 },
  })
  assert.deepEqual(rubric(null), { value: 0.75, reason: 'accuracy 1.00: all right; speed 0.00: too slow' })
})

test('weighted() refuses weights that give no mean', () => {
  assert.throws(() => weighted({ a: { rubric: always(1), weight: 0 } }), RangeError)
  assert.throws(() => weighted({ a: { rubric: always(1), weight: -1 } }), RangeError)
  assert.throws(() => weighted({ a: { rubric: always(1), weight: Number.NaN } }), RangeError)
})

test('weighted() stays between its lowest and its highest part', () => {
  const part = fc.record({
    value: fc.double({ min: 0, max: 1, noNaN: true }),
    weight: fc.integer({ min: 1, max: 100 }),
  })
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), parts => {
      const rubric = weighted(
        Object.fromEntries(parts.map(({ value, weight }, index) => [`p${index}`, { rubric: always(value), weight }])),
      )
      const { value } = rubric(null)
      const values = parts.map(({ value }) => value)
      assert.ok(value >= Math.min(...values) - 1e-9 && value <= Math.max(...values) + 1e-9)
    }),
  )
})

test('gated() gives 0 and the reason of a gate that stays shut', () => {
  assert.deepEqual(gated(always(0.4, 'no losses'), always(1, 'good'), 0.5)(null), { value: 0, reason: 'no losses' })
})

test('gated() lets the rubric decide from the threshold on', () => {
  assert.deepEqual(gated(always(0.5), always(0.7, 'fair'), 0.5)(null), { value: 0.7, reason: 'fair' })
})

test('sequential() stops at the first 0 and never asks the rest', () => {
  const asked: string[] = []
  const note = (name: string, value: number): Rubric<unknown> => {
    return () => {
      asked.push(name)
      return score(value, name)
    }
  }
  assert.deepEqual(sequential(note('a', 0.5), note('b', 0), note('c', 1))(null), { value: 0, reason: 'b' })
  assert.deepEqual(asked, ['a', 'b'])
})

test('sequential() ends with the score of its last rubric', () => {
  assert.equal(sequential(always(0.2), always(0.6))(null).value, 0.6)
})

test('focused() judges the chosen part of wider evidence', () => {
  const long: Rubric<string> = text => score(text.length / 10, 'length')
  assert.equal(focused((whole: { text: string }) => whole.text, long)({ text: 'abcde' }).value, 0.5)
})
