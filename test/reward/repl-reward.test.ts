import assert from 'node:assert/strict'
import test from 'node:test'
import { fuzzyMatch } from '../../src/reward/answer.ts'
import { type ReplEvidence, rewardReplStep } from '../../src/reward/repl-reward.ts'

const ordinary: ReplEvidence = { ended: null, answer: null, failed: false, infra: false, expected: null }
const rows: [string, Partial<ReplEvidence>, number | null][] = [
  ['an ordinary step', {}, 0],
  ['an ordinary step with an expected answer', { expected: 'x' }, 0],
  ['a failing step', { failed: true }, -0.05],
  ['a failing step with an expected answer', { failed: true, expected: 'x' }, -0.05],
  ['any answer where none is expected', { ended: 'answer', answer: 'anything' }, 1],
  ['an empty answer where none is expected', { ended: 'answer', answer: '' }, 1],
  ['an answer in a failing step where none is expected', { ended: 'answer', answer: 'a', failed: true }, 1],
  ['the right answer', { ended: 'answer', answer: ' X ', expected: 'x' }, 1],
  ['a wrong answer', { ended: 'answer', answer: 'y', expected: 'x' }, 0],
  ['a wrong answer in a failing step', { ended: 'answer', answer: 'y', expected: 'x', failed: true }, 0],
  ['an empty answer where an empty one is expected', { ended: 'answer', answer: '', expected: '' }, 1],
  ['the limit', { ended: 'limit' }, -0.1],
  ['the limit with a draft where none is expected', { ended: 'limit', answer: 'x' }, -0.1],
  ['the limit without a draft', { ended: 'limit', expected: 'x' }, -0.1],
  ['the limit with the right draft', { ended: 'limit', answer: 'x', expected: 'x' }, 1],
  ['the limit with a wrong draft', { ended: 'limit', answer: 'y', expected: 'x' }, 0],
  ['a step in which the service failed', { failed: true, infra: true }, null],
  [
    'the limit in a step in which the service failed',
    { ended: 'limit', failed: true, infra: true, expected: 'x' },
    null,
  ],
]

for (const [what, evidence, value] of rows) {
  test(`rewardReplStep() gives ${value} for ${what}`, () => {
    const reward = rewardReplStep({ ...ordinary, ...evidence })
    assert.equal(reward.value, value)
    assert.notEqual(reward.reason, '')
  })
}

test('rewardReplStep() grades with the rubric it is given', () => {
  const evidence: ReplEvidence = { ...ordinary, ended: 'answer', answer: 'it is x', expected: 'x' }
  assert.equal(rewardReplStep(evidence, fuzzyMatch).value, 0.5)
})
