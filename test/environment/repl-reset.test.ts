import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { countCodePoints, firstCodePoints, type ReplDefaults, readReplReset } from '../../src/environment/repl-reset.ts'
import { ReplReset } from '../../src/environment/repl-schemas.ts'

const defaults: ReplDefaults = { context: 'default context', taskPrompt: 'default task', previewChars: 5 }
const none: ReplDefaults = { context: '', taskPrompt: '', previewChars: 5 }

test('readReplReset() falls back to the defaults for missing, null and empty texts', () => {
  for (const given of [{}, { context: null, task_prompt: null }, { context: '', task_prompt: '' }]) {
    const start = readReplReset(given, defaults)
    assert.equal(start.context, 'default context')
    assert.equal(start.taskPrompt, 'default task')
    assert.equal(start.contextPreview, 'defau')
  }
})

test('readReplReset() without any context shows none', () => {
  const start = readReplReset({}, none)
  assert.equal(start.contextPreview, null)
  assert.equal(start.contextLength, 0)
})

test('readReplReset() counts and previews Unicode characters', () => {
  const start = readReplReset({ context: '🙂🙂🙂🙂🙂🙂ab' }, none)
  assert.equal(start.contextLength, 8)
  assert.equal(start.contextPreview, '🙂🙂🙂🙂🙂')
})

test('readReplReset() makes an id when none is given', () => {
  assert.match(readReplReset({}, none).episodeId, /^[0-9a-f-]{36}$/)
  assert.equal(readReplReset({ episode_id: 'mine' }, none).episodeId, 'mine')
})

test('readReplReset() keeps the type of expected_answer, and an empty one', () => {
  for (const expected of ['', 'x', 0, 1.5, false, true]) {
    assert.equal(readReplReset({ expected_answer: expected }, none).expected, expected)
  }
  assert.equal(readReplReset({ expected_answer: null }, none).expected, null)
})

test('readReplReset() brings every seed into a range that generators take, or drops it', () => {
  assert.equal(readReplReset({ seed: 7 }, none).seed, 7)
  assert.equal(readReplReset({ seed: 0 }, none).seed, 0)
  assert.equal(readReplReset({ seed: -5 }, none).seed, 2 ** 32 - 5)
  assert.equal(readReplReset({ seed: 2 ** 40 + 3 }, none).seed, 3)
  for (const odd of [1.5, 'abc', Number.NaN, {}, [], null]) assert.equal(readReplReset({ seed: odd }, none).seed, null)
})

test('readReplReset() replaces an id that is no usable text', () => {
  for (const odd of [5, {}, '', 'x'.repeat(300)]) {
    assert.match(readReplReset({ episode_id: odd }, none).episodeId, /^[0-9a-f-]{36}$/)
  }
})

test('readReplReset() refuses a context that is no text', () => {
  assert.throws(() => readReplReset({ context: 5 }, none), { code: 'invalid_request' })
})

test('readReplReset() keeps no key', () => {
  assert.doesNotMatch(JSON.stringify(readReplReset({ hf_token: 'hf_secret' }, none)), /hf_secret/)
})

test('countCodePoints() and firstCodePoints() agree with the string iterator', () => {
  const anyText = fc.string({ unit: fc.constantFrom('a', 'é', '🙂', '\ud83d', '\ude42') })
  fc.assert(
    fc.property(anyText, fc.nat(20), (text, count) => {
      assert.equal(countCodePoints(text), [...text].length)
      assert.equal(firstCodePoints(text, count), [...text].slice(0, count).join(''))
    }),
  )
})

test('ReplReset refuses an expected_answer whose digits JSON has lost, and says what to do', () => {
  const refused = ReplReset.safeParse({ expected_answer: 2 ** 53 })
  assert.match(refused.error?.issues[0]?.message ?? '', /as a string/)
  assert.equal(ReplReset.safeParse({ expected_answer: String(2n ** 53n) }).success, true)
  assert.match(
    ReplReset.safeParse({ expected_answer: [1] }).error?.issues[0]?.message ?? '',
    /string, a boolean, or a number/,
  )
})
