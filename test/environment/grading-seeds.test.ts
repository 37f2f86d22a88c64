import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { hiddenRuns, publicRun } from '../../src/environment/grading-seeds.ts'

const runsOf = (salt: string, task: string, seed: number) => [
  publicRun(salt, task, seed),
  ...hiddenRuns(salt, task, seed),
]

test('runs are the same for the same salt, task and seed, and differ in all else', () => {
  const bases: [string, string, number][] = [
    ['salt', 'task1', 7],
    ['other salt', 'task1', 7],
    ['salt', 'task2', 7],
    ['salt', 'task1', 8],
    ['salt', 'task1', -7],
  ]
  assert.deepEqual(runsOf('salt', 'task1', 7), runsOf('salt', 'task1', 7))
  const all = bases.flatMap(base => runsOf(...base))
  assert.equal(new Set(all.map(({ data_seed }) => data_seed)).size, all.length)
  assert.equal(new Set(all.map(({ init_seed }) => init_seed)).size, all.length)
})

test('seeds are whole numbers that Python and JSON keep: 53 bits of data, 31 bits of weights', () => {
  let widest = { data_seed: 0, init_seed: 0 }
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.maxSafeInteger(), (salt, task, seed) => {
      for (const { data_seed, init_seed } of runsOf(salt, task, seed)) {
        assert.ok(Number.isSafeInteger(data_seed) && data_seed >= 0)
        assert.ok(Number.isInteger(init_seed) && init_seed >= 0 && init_seed < 2 ** 31)
        widest = {
          data_seed: Math.max(widest.data_seed, data_seed),
          init_seed: Math.max(widest.init_seed, init_seed),
        }
      }
    }),
    { seed: 1, numRuns: 200 },
  )
  assert.ok(widest.data_seed > 2 ** 52 && widest.init_seed > 2 ** 30)
})

test('publicRun() has the kind of the parity of the seed, hiddenRuns() one run of each kind', () => {
  const kinds = [0, 1, 2, -1, -2, Number.MAX_SAFE_INTEGER].map(seed => publicRun('salt', 'task1', seed).kind)
  assert.deepEqual(kinds, [0, 1, 0, 1, 0, 1])
  assert.deepEqual(
    hiddenRuns('salt', 'task1', 3).map(({ kind }) => kind),
    [0, 1],
  )
})
