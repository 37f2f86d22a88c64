import assert from 'node:assert/strict'
import test from 'node:test'
import { type ExpectedAnswer, exactMatch, fuzzyMatch, numericMatch } from '../../src/reward/answer.ts'

const cases: [string, ExpectedAnswer, number][] = [
  ['42', '42', 1],
  ['  Paris\n', 'paris', 1],
  ['', '', 1],
  ['x', '', 0],
  ['True', true, 1],
  ['False', true, 0],
  ['1', true, 0],
  ['3', 3, 1],
  ['3.0', 3, 1],
  ['3e0', 3, 1],
  ['1e-05', 0.00001, 1],
  ['3.1', 3, 0],
  ['three', 3, 0],
  ['', 0, 0],
  ['0x3', 3, 0],
  ['3.0', '3', 0],
  ['inf', 3, 0],
]

for (const [answer, expected, value] of cases) {
  test(`exactMatch() gives ${value} for ${JSON.stringify(answer)} where ${JSON.stringify(expected)} is expected`, () => {
    assert.equal(exactMatch({ answer, expected }).value, value)
  })
}

test('fuzzyMatch() gives half for containment either way', () => {
  assert.equal(fuzzyMatch({ answer: 'It is Paris.', expected: 'paris' }).value, 0.5)
  assert.equal(fuzzyMatch({ answer: 'Par', expected: 'paris' }).value, 0.5)
  assert.equal(fuzzyMatch({ answer: 'PARIS', expected: 'paris' }).value, 1)
  assert.equal(fuzzyMatch({ answer: 'Rome', expected: 'paris' }).value, 0)
})

test('fuzzyMatch() gives an empty answer nothing', () => {
  assert.equal(fuzzyMatch({ answer: ' ', expected: 'paris' }).value, 0)
})

test('numericMatch() takes the wider of both tolerances', () => {
  assert.equal(numericMatch({ absolute: 0.5 })({ answer: '3.4', expected: 3 }).value, 1)
  assert.equal(numericMatch({ relative: 0.01 })({ answer: '100.9', expected: '100' }).value, 1)
  assert.equal(numericMatch({ absolute: 0.1, relative: 0.01 })({ answer: '102', expected: 100 }).value, 0)
})

test('numericMatch() is exact by default and refuses what is no number', () => {
  assert.equal(numericMatch()({ answer: '3.0', expected: 3 }).value, 1)
  assert.equal(numericMatch()({ answer: 'nan', expected: 3 }).value, 0)
  assert.equal(numericMatch()({ answer: '1e999', expected: 3 }).value, 0)
  assert.equal(numericMatch()({ answer: '3', expected: 'three' }).value, 0)
})

test('no reason gives the expected answer away', () => {
  for (const rubric of [exactMatch, fuzzyMatch, numericMatch({ relative: 0.1 })]) {
    assert.doesNotMatch(rubric({ answer: '5', expected: 731 }).reason, /\d/)
  }
})

test('exactMatch() compares numbers to the last digit', () => {
  const same = (answer: string, expected: number) => exactMatch({ answer, expected }).value
  assert.equal(same('3.00000000000000000001', 3), 0)
  assert.equal(same('-0.50', -0.5), 1)
  assert.equal(same('1000e18', 1e21), 1)
  assert.equal(same('0.0', 0), 1)
  assert.equal(same('9007199254740992', 9007199254740991), 0)
})
