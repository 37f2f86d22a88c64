import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonValue } from '../../src/environment/environment.ts'
import { readProbeReport, readTensorReport, readVariableReport } from '../../src/environment/ml-debug-reports.ts'

const tensor = {
  error: null,
  shape: [2, 3],
  dtype: 'torch.float32',
  requires_grad: false,
  grad_is_none: true,
  min_val: 0,
  max_val: 1.5,
  mean_val: 0.5,
  is_nan: false,
  is_inf: null,
}
const probe = {
  error: null,
  losses: [1, null, 0.5],
  grad_norms: { 'layer.weight': 0.25, 'layer.bias': null },
  optimizer_param_count: 12,
  final_loss: 0.5,
  loss_is_nan: true,
  loss_is_inf: null,
}
const variable = { repr: '1', type: 'int', value: 1, shape: null, error: null }

test('a report becomes fields and an error, with what else the instrument says', () => {
  const { error, ...fields } = tensor
  assert.deepEqual(readTensorReport({ ...tensor, std_val: 0.1, parameters: [{ name: 'w' }] }), {
    fields: { ...fields, std_val: 0.1, parameters: [{ name: 'w' }] },
    error,
  })
  assert.equal(readTensorReport({ ...tensor, error: 'no' })?.error, 'no')
  assert.equal(readProbeReport(probe)?.fields.loss_is_inf, false)
  assert.deepEqual(readVariableReport({ results: { 'a + 1': variable } })?.fields, { results: { 'a + 1': variable } })
})

test('a report can not set a field that belongs to somebody else', () => {
  const stolen = {
    ...tensor,
    reward: 1,
    done: true,
    metadata: {},
    episode_done: true,
    task_id: 'task6',
    stdout: 'x',
    success: true,
    grader_details: {},
    losses: [0],
    'not a name': 1,
    __proto__x: 1,
    [`a${'b'.repeat(80)}`]: 1,
  }
  const { error: _error, ...fields } = tensor
  assert.deepEqual(readTensorReport(stolen)?.fields, fields)
  const odd = JSON.parse(`{"__proto__": {"x": 1}, ${JSON.stringify(tensor).slice(1)}`)
  assert.deepEqual(readTensorReport(odd)?.fields, fields)
})

test('texts are cut to what clients expect', () => {
  const report = readVariableReport({ results: { a: { ...variable, repr: 'r'.repeat(999), error: 'e'.repeat(999) } } })
  const cut = { ...variable, repr: 'r'.repeat(500), error: 'e'.repeat(200) }
  assert.deepEqual(report?.fields, { results: { a: cut } })
  assert.equal(readTensorReport({ ...tensor, error: 'e'.repeat(999) })?.error?.length, 500)
})

const broken: [name: string, read: (report: unknown) => unknown, report: unknown][] = [
  ['nothing', readTensorReport, null],
  ['an empty report', readTensorReport, {}],
  ['a text in place of a number', readTensorReport, { ...tensor, min_val: 'low' }],
  ['a list in place of an object', readProbeReport, { ...probe, grad_norms: [] }],
  ['too many losses', readProbeReport, { ...probe, losses: Array.from({ length: 1001 }, () => 1) }],
  ['a fraction of a parameter', readProbeReport, { ...probe, optimizer_param_count: 1.5 }],
  [
    'too many results',
    readVariableReport,
    { results: Object.fromEntries('abcdefghijk'.split('').map(n => [n, variable])) },
  ],
  ['a result that is a number', readVariableReport, { results: { a: 5 } }],
  ['too much text', readTensorReport, { ...tensor, extra: 'x'.repeat(3_000_000) }],
  ['too deep a nesting', readTensorReport, { ...tensor, extra: JSON.parse('['.repeat(2000) + ']'.repeat(2000)) }],
]
for (const [name, read, report] of broken) {
  test(`a report with ${name} is none`, () => assert.equal(read(report), null))
}

test('no JSON value makes a reader throw, or pass on what is no JSON', () => {
  const value = fc.oneof(
    fc.jsonValue(),
    fc.record({ ...Object.fromEntries(Object.keys(probe).map(k => [k, fc.jsonValue()])) }),
  )
  fc.assert(
    fc.property(value, given => {
      for (const read of [readTensorReport, readVariableReport, readProbeReport]) {
        const report = read(given)
        if (report !== null) assert.doesNotThrow(() => JSON.stringify(report.fields as JsonValue))
      }
    }),
  )
})
