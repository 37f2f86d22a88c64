import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { METRICS_END, METRICS_START, readPrintedMetrics } from '../../src/environment/printed-metrics.ts'

const nothing = { losses: [], finalLoss: null, valAccs: [], valAcc: null, nanCount: 0 }

test('readPrintedMetrics() reads lists and numbers, and takes the last of a list where no number was printed', () => {
  assert.deepEqual(readPrintedMetrics('epoch 1\nLOSSES:[0.9, 5e-1,.25]\nVAL_ACCS:[0.5,1]\n'), {
    losses: [0.9, 0.5, 0.25],
    finalLoss: 0.25,
    valAccs: [0.5, 1],
    valAcc: 1,
    nanCount: 0,
  })
  const told = readPrintedMetrics('LOSSES:[3]\nFINAL_LOSS:0.125\nVAL_ACCS:[0.1]\nVAL_ACC: 0.75 of 1')
  assert.deepEqual([told.finalLoss, told.valAcc], [0.125, 0.75])
})

test('readPrintedMetrics() reads the marked part only, also when its end is missing', () => {
  const marked = `LOSSES:[9]\n${METRICS_START}\nLOSSES:[1]\n${METRICS_END}\nVAL_ACC:0.5\n`
  assert.deepEqual(readPrintedMetrics(marked), { ...nothing, losses: [1], finalLoss: 1 })
  assert.deepEqual(readPrintedMetrics(`VAL_ACC:1\n${METRICS_START}\nLOSSES:[2, 1]`).losses, [2, 1])
})

test('readPrintedMetrics() keeps NaN and infinities and counts the NaN among the losses', () => {
  const { losses, finalLoss, nanCount } = readPrintedMetrics('LOSSES:[nan, -inf, 2.0, Infinity, NaN]')
  assert.deepEqual(losses, [Number.NaN, Number.NEGATIVE_INFINITY, 2, Number.POSITIVE_INFINITY, Number.NaN])
  assert.deepEqual([finalLoss, nanCount], [Number.NaN, 2])
})

for (const [name, text] of [
  ['nothing', ''],
  ['a key without a value', 'LOSSES:\nVAL_ACC:-\nFINAL_LOSS:'],
  ['a key inside another word', 'MY_LOSSES:[1]\nxVAL_ACC:1\nNOT_FINAL_LOSS:2'],
  ['words in place of numbers', 'LOSSES:[a, tensor(0.5), 0x10, 1_0, "1"]\nVAL_ACC:good'],
  ['a value on the next line', 'VAL_ACC:\n0.5'],
] as const) {
  test(`readPrintedMetrics() finds nothing in ${name}`, () => assert.deepEqual(readPrintedMetrics(text), nothing))
}

test('readPrintedMetrics() leaves out the two numbers that a cut went through', () => {
  const cut = 'LOSSES:[0.5, 0.4, 0.3\n… 100 characters left out …\n123, 0.2, 0.1]'
  assert.deepEqual(readPrintedMetrics(cut).losses, [0.5, 0.4, 0.2, 0.1])
  assert.deepEqual(readPrintedMetrics('LOSSES:[0.5, 0.4').losses, [0.5, 0.4])
})

test('readPrintedMetrics() takes a bounded number of values', () => {
  assert.equal(readPrintedMetrics(`LOSSES:[${'1,'.repeat(20_000)}1]`).losses.length, 5_000)
})

test('readPrintedMetrics() survives any text', () => {
  const pieces = fc.constantFrom(
    'LOSSES:',
    'VAL_ACC:',
    '[',
    ']',
    ',',
    'nan',
    '1e5',
    METRICS_START,
    METRICS_END,
    '\n',
    '-',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(pieces, fc.string()), { maxLength: 40 }), parts => {
      const { losses, nanCount } = readPrintedMetrics(parts.join(''))
      return nanCount <= losses.length && losses.every(value => typeof value === 'number')
    }),
  )
})
