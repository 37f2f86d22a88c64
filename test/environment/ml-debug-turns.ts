/** How an ml_debug episode counts, ends and rewards. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { referenceOf } from '../fixtures/real-ml-debug.ts'
import type { OpenEpisode } from './ml-debug-tools.ts'

const COMPLETE = 'Episode already complete. Call reset() to start a new episode.'
const submit = (fixed_code: string, rest: object = {}) => ({ action_type: 'submit_fix', fixed_code, ...rest })

/** Define the tests of this group. */
export function turnTests(open: OpenEpisode): void {
  test('every action costs a turn, failing ones too, and the eleventh ends the episode', async () => {
    const { act, run, state } = await open()
    await run('1 / 0')
    await act({ action_type: 'inspect_tensor', target_expression: '' })
    await act({ action_type: 'inspect_diff', proposed_code: 'x' })
    for (let turn = 4; turn <= 10; turn++) {
      const { shown, metadata } = await run('1')
      assert.deepEqual([shown.turn, shown.turns_used, metadata.turns_remaining], [turn, turn, 10 - turn])
    }
    assert.deepEqual([state().turn, state().done], [10, false])
    const over = await act(submit('print(1)'))
    assert.equal(over.shown.error, 'Maximum turns (10) exceeded. Episode terminated.')
    assert.deepEqual([over.reward, over.done, over.shown.turn], [0.001, true, 11])
    assert.deepEqual([over.metadata.terminated, over.metadata.truncated], [false, true])
    const after = await run('1')
    assert.deepEqual([after.shown.error, after.reward, after.done, after.shown.turn], [COMPLETE, 0.001, true, 11])
    assert.deepEqual([state().step_count, state().submitted, state().done], [11, false, true])
  })

  test('ML_DEBUG_MAX_TURNS sets the number of turns', async () => {
    const { run } = await open({}, { ML_DEBUG_MAX_TURNS: '1' })
    assert.equal((await run('1')).done, false)
    assert.equal((await run('1')).shown.error, 'Maximum turns (1) exceeded. Episode terminated.')
  })

  test('the broken script earns little, and its submission ends the episode', async () => {
    const { act, run, initial, state } = await open()
    const { shown, metadata, reward, done } = await act(submit(initial.shown.buggy_code, { explanation: 'none' }))
    assert.ok(reward !== null && reward > 0 && reward <= 0.25)
    assert.deepEqual([done, shown.success, shown.error], [true, false, null])
    assert.deepEqual([metadata.terminated, metadata.truncated, metadata.reason], [true, false, 'ok'])
    assert.equal(typeof metadata.reward_reason, 'string')
    assert.deepEqual([state().submitted, state().best_reward, state().done], [true, reward, true])
    const again = await run('1')
    assert.deepEqual([again.shown.error, again.reward, again.done], [COMPLETE, 0.001, true])
    assert.deepEqual([again.shown.last_reward, again.shown.turn], [reward, 1])
  })

  test('a repaired script is a success, and the grade explains itself', async () => {
    const { act } = await open({ task_id: 'task1' })
    const script = referenceOf('task1')
    const { shown, reward, done } = await act(submit(`The fix:\n\`\`\`python\n${script}\`\`\`\nDone.`))
    assert.ok(reward !== null && reward >= 0.9 && reward < 1)
    assert.equal(reward, Number(reward.toFixed(4)))
    assert.deepEqual([done, shown.success, shown.last_reward], [true, true, reward])
    assert.match(shown.stdout, /LOSSES:\[/)
    assert.equal(shown.error_log, shown.stdout + shown.stderr)
    assert.ok(shown.losses.length > 5)
    assert.equal(shown.final_loss, shown.losses.at(-1))
    const { metrics } = shown
    assert.deepEqual(Object.keys(metrics).sort(), [
      'best_reward_so_far',
      'consistency_flag',
      'elapsed_seconds',
      'exit_code',
      'final_loss',
      'nan_count',
      'reward_breakdown',
      'reward_variance',
      'step',
      'timed_out',
      'val_acc',
    ])
    assert.deepEqual([metrics.best_reward_so_far, metrics.step, metrics.nan_count], [reward, 1, 0])
    assert.deepEqual([metrics.exit_code, metrics.timed_out, metrics.consistency_flag], [0, false, false])
    const { score, runs } = shown.grader_details as { score: number; runs: { credits: object }[] }
    assert.equal(score, reward)
    assert.equal(runs.length, 2)
    assert.deepEqual(Object.keys(metrics.reward_breakdown as object), Object.keys(runs[0]?.credits ?? {}))
    const earned = Object.values(metrics.reward_breakdown as Record<string, number>).reduce(
      (sum, part) => sum + part,
      0,
    )
    assert.ok(earned > 0.85 && earned <= 1)
  })

  test('what a submission prints about itself is shown, and earns nothing', async () => {
    const { act } = await open()
    const { shown, reward } = await act(submit('print("LOSSES:[nan, inf, 0.1]\\nVAL_ACC:0.99\\nFINAL_LOSS:0.001")'))
    assert.ok(reward !== null && reward < 0.05)
    assert.deepEqual(shown.losses, [null, null, 0.1])
    assert.deepEqual([shown.final_loss, shown.loss_is_nan, shown.loss_is_inf], [0.001, true, true])
    assert.deepEqual([shown.metrics.val_acc, shown.metrics.nan_count], [0.99, 1])
  })

  test('a submission that crashes shows the traceback and its exit code', async () => {
    const { act } = await open()
    const { shown, reward, done } = await act(submit('import torch\nraise RuntimeError("shapes do not match")'))
    assert.ok(reward !== null && reward < 0.05 && done)
    assert.deepEqual([shown.exit_code, shown.error, shown.success], [1, null, false])
    assert.match(shown.stderr, /RuntimeError: shapes do not match/)
    assert.match(shown.error_log, /RuntimeError: shapes do not match/)
  })

  test('fixed_code falls back to code', async () => {
    const { act } = await open()
    const { shown } = await act({ code: 'print("from code")' })
    assert.equal(shown.stdout, 'from code\n')
  })

  for (const [name, action] of [
    ['nothing', {}],
    ['white space', { fixed_code: ' \n\t', code: '\n' }],
    ['an empty fence', { fixed_code: '```python\n```' }],
  ] as const) {
    test(`submitting ${name} ends the episode with the least reward`, async () => {
      const { act, run } = await open()
      const { shown, reward, done, metadata } = await act(action)
      assert.deepEqual([shown.error, reward, done], ['Empty code submitted', 0.001, true])
      assert.deepEqual([shown.action_type, metadata.terminated], ['submit_fix', true])
      assert.equal((await run('1')).shown.error, COMPLETE)
    })
  }

  test('a submission beyond the size that is taken ends the episode with the least reward', async () => {
    const { act } = await open()
    const { shown, reward, done } = await act(submit('x'.repeat(300_000)))
    assert.match(shown.error ?? '', /^fixed_code is too long: 300000 bytes/)
    assert.deepEqual([reward, done], [0.001, true])
  })

  test('a failure of the service costs no turn, and the client may submit again', async () => {
    const { act, run, close, state } = await open()
    await run('1')
    // What every action meets when the service shuts down under it.
    close()
    const { shown, reward, done, metadata } = await run('1')
    assert.match(shown.error ?? '', /^infra_error: /)
    assert.deepEqual([reward, done, shown.turn, metadata.reason], [null, false, 1, 'infra_error'])
    assert.deepEqual([state().turn, state().done], [1, false])
    assert.ok((await act(submit('print(1)'))).done)
  })

  test('turns are given back as often as an episode has turns, and no more', async () => {
    const { run, close } = await open({}, { ML_DEBUG_MAX_TURNS: '2' })
    close()
    const turns: number[] = []
    for (let call = 0; call < 4; call++) turns.push((await run('1')).shown.turn)
    assert.deepEqual(turns, [0, 0, 1, 2])
    assert.match((await run('1')).shown.error ?? '', /^Maximum turns \(2\) exceeded/)
  })

  test('a grading that finds no time costs no turn either', async () => {
    const { act, state } = await open({}, { STEP_CEILING_S: '1' })
    const slow = await act(submit('import time\ntime.sleep(5)'))
    assert.match(slow.shown.error ?? '', /^infra_error: /)
    assert.deepEqual([slow.reward, slow.done, slow.shown.turn, slow.shown.success], [null, false, 0, false])
    assert.deepEqual([slow.metadata.reason, slow.metadata.terminated], ['infra_error', false])
    assert.deepEqual([state().turn, state().submitted, state().best_reward], [0, false, 0])
  })
}
