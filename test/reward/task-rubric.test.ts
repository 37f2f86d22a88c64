import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  judgeRepair,
  type Measure,
  measureNames,
  type RubricNode,
  type RunEvidence,
  type TaskRubric,
} from '../../src/reward/task-rubric.ts'

const ramp = (name: string, from: number, to: number): RubricNode => ({ ramp: { measure: name }, from, to })
const credit = (value: RubricNode, weight = 1) => ({ weight, value, shows: 'held-out loss' })
const run = (measures: Record<string, Measure>): RunEvidence => ({ valid: true, why: '', measures })
const invalid = (why: string): RunEvidence => ({ valid: false, why, measures: {} })

const RUBRIC: TaskRubric = {
  moved: ramp('shift', 0, 1),
  learned: ramp('acc', 0.5, 0.7),
  credits: { loss: credit(ramp('nll', 2, 1), 0.75), memory: credit(ramp('growth', 130, 70), 0.25) },
}
const PERFECT = { shift: 1, acc: 0.9, nll: 0.5, growth: 10 }

/** The value of one formula on one run, read from the credit it is put in. */
function worthOf(node: RubricNode, measures: Record<string, Measure>, others: RunEvidence[] = []): number | undefined {
  const rubric = { moved: ramp('one', 0, 1), learned: ramp('one', 0, 1), credits: { it: credit(node) } }
  return judgeRepair(rubric, [run({ one: 1, ...measures }), ...others]).runs[0]?.credits.it?.value
}

test('judgeRepair() gives 0.99 for all credits and 0.01 for none', () => {
  assert.equal(judgeRepair(RUBRIC, [run(PERFECT), run(PERFECT)]).score, 0.99)
  assert.equal(judgeRepair(RUBRIC, [run({ shift: 0, acc: 0.4, nll: 9, growth: 999 })]).score, 0.01)
})

test('judgeRepair() pays 0.04 of the range for moved weights once something was learned', () => {
  const { score } = judgeRepair(RUBRIC, [run({ ...PERFECT, nll: 9, growth: 999 })])
  assert.equal(score, 0.0492)
})

test('judgeRepair() pays nothing where nothing was learned, whatever else is fine', () => {
  assert.equal(judgeRepair(RUBRIC, [run({ ...PERFECT, acc: 0.5 })]).score, 0.01)
})

test('judgeRepair() multiplies every credit by what was learned', () => {
  const { score } = judgeRepair(RUBRIC, [run({ ...PERFECT, acc: 0.6 })])
  assert.equal(score, 0.5)
})

test('judgeRepair() takes the mean of the runs, to four decimals', () => {
  assert.equal(judgeRepair(RUBRIC, [run(PERFECT), run({ ...PERFECT, growth: 999 })]).score, 0.8724)
  assert.equal(judgeRepair(RUBRIC, [run(PERFECT), invalid('x')]).score, 0.5)
})

test('judgeRepair() gives an invalid run 0.01 and its credits 0, and says why', () => {
  const { score, runs, reason } = judgeRepair(RUBRIC, [invalid('weights.safetensors: the script did not write it')])
  assert.equal(score, 0.01)
  assert.equal(runs[0]?.valid, false)
  assert.equal(runs[0]?.credits.loss?.value, 0)
  assert.match(reason, /not valid, because weights\.safetensors: the script did not write it/)
})

test('judgeRepair() takes no measure of an invalid run for true', () => {
  assert.equal(judgeRepair(RUBRIC, [{ valid: false, why: '', measures: PERFECT }]).score, 0.01)
})

test('judgeRepair() shows each credit with its value, weight, words and measures', () => {
  const { runs } = judgeRepair(RUBRIC, [run({ ...PERFECT, nll: 1.234567 })])
  const { value, ...rest } = runs[0]?.credits.loss ?? { value: -1 }
  assert.deepEqual(rest, { weight: 0.75, shows: 'held-out loss', measured: { nll: 1.235 } })
  assert.ok(Math.abs(value - 0.8609) < 1e-3, String(value))
  assert.deepEqual(runs[0]?.measured, { shift: 1, acc: 0.9 })
})

test('the reason of judgeRepair() names the largest loss first', () => {
  const { reason } = judgeRepair(RUBRIC, [run({ ...PERFECT, nll: 9, growth: 999 })])
  assert.match(
    reason,
    /^0\.0492 is the mean of 1 hidden runs; on every hidden run: loss has 0\.00 of 1 at weight 0\.75.*memory has 0\.00/,
  )
})

test('the reason of judgeRepair() says when nothing was lost', () => {
  assert.match(judgeRepair(RUBRIC, [run(PERFECT)]).reason, /full credit/)
})

test('a ramp is 3t² − 2t³ in both directions, and flat outside', () => {
  for (const [from, to] of [
    [0, 4],
    [4, 0],
  ] as const) {
    const at = (t: number) => worthOf(ramp('x', from, to), { x: from + t * (to - from) })
    assert.deepEqual([-1, 0, 0.25, 0.5, 1, 2].map(at), [0, 0, 0.15625, 0.5, 1, 1])
  }
})

test('a measure that is not finite earns nothing, even where less is better', () => {
  for (const x of [null, Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]) {
    assert.equal(worthOf(ramp('x', 1, 0), { x }), 0)
    assert.equal(worthOf({ mean: ramp('x', 1, 0) }, { x: [x, 0] }), 0.5)
    assert.equal(worthOf({ measure: 'x' }, { x }), 0)
  }
})

test('mean takes the mean of a list, and 0 of an empty one', () => {
  assert.equal(worthOf({ mean: ramp('x', 0, 1) }, { x: [0, 1, 1, 1] }), 0.75)
  assert.equal(worthOf({ mean: ramp('x', 0, 1) }, { x: [] }), 0)
})

test('product works element by element, and a number counts for every element', () => {
  const node: RubricNode = { mean: { product: [{ measure: 'list' }, { measure: 'other' }, { measure: 'half' }] } }
  assert.equal(worthOf(node, { list: [1, 1, 0, null], other: [1, 0.5, 1, 1], half: 0.5 }), 0.1875)
})

test('sum weighs its parts', () => {
  const node: RubricNode = {
    sum: [
      { weight: 0.5, of: { measure: 'a' } },
      { weight: 0.25, of: { measure: 'b' } },
    ],
  }
  assert.equal(worthOf(node, { a: 1, b: 0.5 }), 0.625)
})

test('worse is the lowest value of all runs, and an invalid run is the lowest there is', () => {
  const node: RubricNode = { worse: ramp('x', 0, 1) }
  assert.equal(worthOf(node, { x: 1 }, [run({ one: 1, x: 0.5 })]), 0.5)
  assert.equal(worthOf(node, { x: 0.5 }, [run({ one: 1, x: 1 })]), 0.5)
  assert.equal(worthOf(node, { x: 1 }, [invalid('gone')]), 0)
  assert.equal(worthOf({ mean: node }, { x: [1, 0.5] }, [run({ one: 1, x: [0.5, 1] })]), 0.5)
})

test('judgeRepair() refuses evidence that the rubric does not fit, and names what', () => {
  assert.throws(() => worthOf(ramp('y', 0, 1), { x: 1 }), /measured no y/)
  assert.throws(() => worthOf(ramp('x', 0, 1), { x: [1, 0] }), /it came to a list of 2/)
  const product: RubricNode = { mean: { product: [{ measure: 'x' }, { measure: 'y' }] } }
  assert.throws(() => worthOf(product, { x: [1, 0], y: [1] }), /lists of 2 and 1/)
  assert.throws(() => judgeRepair(RUBRIC, []), RangeError)
})

test('measureNames() finds the measures of every kind of node', () => {
  const leaf = (measure: string): RubricNode => ({ measure })
  const node: RubricNode = {
    product: [
      { ramp: leaf('a'), from: 0, to: 1 },
      { mean: leaf('b') },
      { worse: leaf('c') },
      { sum: [{ weight: 1, of: leaf('d') }] },
    ],
  }
  assert.deepEqual(measureNames(node), ['a', 'b', 'c', 'd'])
})

const number = fc.oneof(fc.double({ min: -1e3, max: 1e3, noNaN: true }), fc.double())
const measure: fc.Arbitrary<Measure> = fc.oneof(number, fc.constant(null))
const bounds = fc
  .tuple(fc.double({ min: -10, max: 10, noNaN: true }), fc.double({ min: -10, max: 10, noNaN: true }))
  .filter(([from, to]) => Math.abs(from - to) > 1e-3)

test('the score is in [0.01, 0.99] with four decimals for every evidence', () => {
  const evidence = fc.record({
    valid: fc.boolean(),
    why: fc.string(),
    measures: fc.record({ shift: measure, acc: measure, nll: measure, growth: measure }),
  })
  fc.assert(
    fc.property(fc.array(evidence, { minLength: 1, maxLength: 3 }), runs => {
      const { score } = judgeRepair(RUBRIC, runs)
      assert.ok(score >= 0.01 && score <= 0.99)
      assert.equal(Number(score.toFixed(4)), score)
    }),
  )
})

test('a formula of ramps never falls when one of its measures gets better', () => {
  const names = ['a', 'b', 'c']
  const { tree } = fc.letrec<{ tree: RubricNode; leaf: RubricNode }>(tie => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      tie('leaf'),
      fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map(product => ({ product })),
      fc
        .array(fc.record({ weight: fc.double({ min: 0, max: 1, noNaN: true }), of: tie('tree') }), { minLength: 1 })
        .map(sum => ({ sum })),
      tie('tree').map(mean => ({ mean })),
      tie('tree').map(worse => ({ worse })),
    ),
    // One direction per measure: what one part wants more of, no other wants less of.
    leaf: fc.tuple(fc.constantFrom(...names), bounds).map(([name, [from, to]]) => {
      const [low, high] = from < to ? [from, to] : [to, from]
      return name === 'c' ? ramp(name, high, low) : ramp(name, low, high)
    }),
  }))
  const value = fc.double({ min: -20, max: 20, noNaN: true })
  const values = fc.record({ a: value, b: value, c: value })
  const rubric = fc.record({ moved: tree, learned: tree, it: tree })
  const better = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.double({ min: 0, max: 20, noNaN: true }))
  fc.assert(
    fc.property(rubric, values, values, better, ({ moved, learned, it }, one, two, [name, by]) => {
      const judge = (measures: Record<string, number>) =>
        judgeRepair({ moved, learned, credits: { it: credit(it) } }, [run(measures), run(two)]).score
      const improved: Record<string, number> = { ...one }
      improved[name] = (improved[name] ?? 0) + (name === 'c' ? -by : by)
      assert.ok(judge(improved) >= judge(one))
    }),
  )
})
