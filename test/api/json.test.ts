import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeUtf8, MAX_JSON_DEPTH, readJson, toJson } from '../../src/api/json.ts'
import { findJsonFault } from '../../src/api/json-fault.ts'

test('toJson() writes text that is well formed and parses back to the well-formed value', () => {
  const strings = fc.string({
    unit: fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\ud800', '\udfff', '\\', '"')),
  })
  fc.assert(
    fc.property(fc.dictionary(strings, strings), value => {
      const expected = Object.entries(value).map(([key, text]) => [key.toWellFormed(), text.toWellFormed()])
      const parsed = JSON.parse(toJson(value))
      assert.ok(toJson(value).isWellFormed())
      assert.deepEqual(parsed, Object.fromEntries(expected))
      assert.doesNotMatch(JSON.stringify(parsed), /(?<!\\)(?:\\\\)*\\ud[89a-f]/)
    }),
  )
})

test('toJson() writes NaN and the infinities as null', () => {
  assert.equal(toJson({ a: Number.NaN, b: [Infinity, -Infinity] }), '{"a":null,"b":[null,null]}')
})

test('readJson() refuses nesting beyond MAX_JSON_DEPTH, however deep', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.equal(readJson(nested(MAX_JSON_DEPTH)).kind, 'value')
  for (const depth of [MAX_JSON_DEPTH + 1, 1_000_000]) assert.equal(readJson(nested(depth)).kind, 'too_deep')
  assert.equal(readJson(`${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}`).kind, 'too_deep')
})

test('decodeUtf8() drops a byte order mark and refuses what is not UTF-8', () => {
  assert.equal(decodeUtf8(Buffer.from('\ufeffé')), 'é')
  assert.equal(decodeUtf8(Buffer.from([0xc3])), null)
})

// The words and offsets of Python's parser, which clients of OpenEnv servers know.
for (const [text, message, offset] of [
  ['', 'Expecting value', 0],
  ['{', 'Expecting property name enclosed in double quotes', 1],
  ['{"a"', "Expecting ':' delimiter", 4],
  ['{"a":1,}', 'Expecting property name enclosed in double quotes', 7],
  ['{"a":1', "Expecting ',' delimiter", 6],
  ['[1 2]', "Expecting ',' delimiter", 3],
  ['[1,]', 'Expecting value', 3],
  ['"abc', 'Unterminated string starting at', 0],
  ['"a\\x"', 'Invalid \\escape', 2],
  ['"a\\u12"', 'Invalid \\uXXXX escape', 3],
  ['"a\nb"', 'Invalid control character at', 2],
  ['{} x', 'Extra data', 3],
  ['01', 'Extra data', 1],
  ['{"😀":x}', 'Expecting value', 5],
  ['NaN', 'Expecting value', 0],
] as const) {
  test(`findJsonFault() of ${JSON.stringify(text)} is ${message} at ${offset}`, () => {
    assert.deepEqual(findJsonFault(text), { message, offset })
  })
}

test('findJsonFault() finds the end of any JSON text that was cut', () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), (text, cut) => {
      const part = text.slice(0, cut % text.length)
      if (readJson(part).kind === 'malformed') assert.ok(findJsonFault(part).offset <= [...part].length)
    }),
  )
})
