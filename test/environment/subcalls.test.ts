import assert from 'node:assert/strict'
import test from 'node:test'
import { answerSubcall, SUBCALL_NAMES } from '../../src/environment/subcalls.ts'

const call = (name: string, given: Record<string, unknown>) =>
  answerSubcall({ name, arguments: given, signal: new AbortController().signal })

for (const name of ['llm_query', 'rlm_query']) {
  test(`${name} answers with a text that names the missing setting`, async () => {
    const answer = await call(name, { prompt: 'hi', model: null })
    assert.match(String(answer), /^Error: .*LLM_MODEL/)
  })
}

for (const name of ['llm_query_batched', 'llm_batch', 'rlm_query_batched']) {
  test(`${name} answers one text for each prompt, and [] for []`, async () => {
    const answers = await call(name, { prompts: ['a', 'b', 'c'], model: 'some-model' })
    assert.ok(Array.isArray(answers))
    assert.equal(answers.length, 3)
    for (const answer of answers) assert.match(answer, /^Error: /)
    assert.deepEqual(await call(name, { prompts: [] }), [])
  })
}

test('answerSubcall() knows every helper that is offered', () => {
  assert.deepEqual(SUBCALL_NAMES, ['llm_query', 'llm_query_batched', 'llm_batch', 'rlm_query', 'rlm_query_batched'])
})

test('answerSubcall() refuses unknown names and arguments of the wrong kind', async () => {
  for (const [name, given] of [
    ['toString', {}],
    ['delete_everything', {}],
    ['llm_query', {}],
    ['llm_query', { prompt: 5 }],
    ['llm_query_batched', { prompts: 'abc' }],
    ['llm_query_batched', { prompts: ['a', 5] }],
    ['llm_query_batched', { prompts: Array(5000).fill('a') }],
  ] as const) {
    await assert.rejects(call(name, given), { code: 'invalid_request' }, name)
  }
})
