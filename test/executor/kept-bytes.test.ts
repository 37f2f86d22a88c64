import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { KeptBytes } from '../../src/executor/kept-bytes.ts'

test('KeptBytes keeps the first and the last bytes however they arrive', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 12 }), { maxLength: 20 })
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 9 }), (arrays, capacity) => {
      const kept = new KeptBytes(capacity)
      for (const array of arrays) kept.push(Buffer.from(array))
      const all = Buffer.concat(arrays)
      assert.equal(kept.total, all.length)
      assert.equal(kept.whole, all.length <= 2 * capacity)
      assert.deepEqual([...kept.head()], [...all.subarray(0, capacity)])
      const after = all.subarray(capacity)
      assert.deepEqual([...kept.tail()], [...after.subarray(Math.max(after.length - capacity, 0))])
    }),
  )
})
