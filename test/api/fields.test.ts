import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { check } from '../../src/api/validation.ts'
import { dict, laxBool, laxInt, laxNumber, seedField, text } from '../../src/environment/fields.ts'

const Fields = z.strictObject({
  int: laxInt({ min: 0, max: 10 }).optional(),
  seed: seedField(),
  number: laxNumber({ above: 0 }).optional(),
  bool: laxBool().optional(),
  text: text(3).optional(),
  dict: dict().optional(),
})

// What pydantic makes of the same value.
for (const [key, given, taken] of [
  ['int', 7, 7],
  ['int', 7.0, 7],
  ['int', '7', 7],
  ['int', ' 7 ', 7],
  ['int', '7.0', 7],
  ['int', '+7', 7],
  ['int', '1_0', 10],
  ['int', true, 1],
  ['seed', null, null],
  ['seed', -5, -5],
  ['number', '1.5', 1.5],
  ['number', '1e-3', 0.001],
  ['number', true, 1],
  ['bool', 0, false],
  ['bool', 1.0, true],
  ['bool', 'YES', true],
  ['bool', 'Off', false],
  ['bool', 't', true],
  ['text', '😀😀😀', '😀😀😀'],
  ['dict', { a: [1] }, { a: [1] }],
] as const) {
  test(`${key} takes ${JSON.stringify(given)} as ${JSON.stringify(taken)}`, () => {
    const result = check(Fields, { [key]: given })
    assert.deepEqual(result, { ok: true, value: { [key]: taken } })
  })
}

for (const [key, given, type] of [
  ['int', 'x', 'int_parsing'],
  ['int', '7.5', 'int_parsing'],
  ['int', '', 'int_parsing'],
  ['int', 1.5, 'int_from_float'],
  ['int', null, 'int_type'],
  ['int', [], 'int_type'],
  ['int', 11, 'less_than_equal'],
  ['int', -1, 'greater_than_equal'],
  ['int', 1e30, 'int_parsing_size'],
  ['seed', '9007199254740993', 'int_parsing_size'],
  ['number', 'x', 'float_parsing'],
  ['number', 'nan', 'float_parsing'],
  ['number', {}, 'float_type'],
  ['number', 0, 'greater_than'],
  ['number', Infinity, 'finite_number'],
  ['bool', 2, 'bool_parsing'],
  ['bool', 'maybe', 'bool_parsing'],
  ['bool', 1.5, 'bool_type'],
  ['bool', null, 'bool_type'],
  ['text', 5, 'string_type'],
  ['text', null, 'string_type'],
  ['text', '😀😀😀😀', 'string_too_long'],
  ['dict', [], 'dict_type'],
  ['dict', null, 'dict_type'],
  ['other', 1, 'extra_forbidden'],
] as const) {
  test(`${key} refuses ${JSON.stringify(given)} as ${type}`, () => {
    const result = check(Fields, { [key]: given })
    assert.equal(result.ok, false)
    assert.deepEqual(result.ok ? [] : result.items.map(item => [item.type, item.loc, item.input]), [
      [type, [key], given],
    ])
  })
}

test('check() names a missing field, with the object that lacks it as input', () => {
  const Nested = z.strictObject({ outer: z.strictObject({ inner: laxInt(), word: text() }) })
  const result = check(Nested, { outer: { other: 1 } }, { loc: ['body'] })
  assert.deepEqual(result.ok ? [] : result.items.map(item => [item.type, item.loc, item.input]), [
    ['missing', ['body', 'outer', 'inner'], { other: 1 }],
    ['missing', ['body', 'outer', 'word'], { other: 1 }],
    ['extra_forbidden', ['body', 'outer', 'other'], 1],
  ])
})
