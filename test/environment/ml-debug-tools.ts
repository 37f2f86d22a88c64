/** What each tool of ml_debug shows, when it works and when it doesn't. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_CODE_BYTES, MAX_EXPRESSION_CHARS } from '../../src/environment/ml-debug-schemas.ts'
import type { MlDebugAnswer, OpenMlDebug } from '../fixtures/real-ml-debug.ts'

export type OpenEpisode = (reset?: Record<string, unknown>, overrides?: Record<string, string>) => Promise<OpenMlDebug>

const inspect = (target_expression: string, setup_code = '') => ({
  action_type: 'inspect_tensor',
  target_expression,
  setup_code,
})
const variables = (expressions: string[], setup_code = '') => ({
  action_type: 'get_variable_state',
  expressions,
  setup_code,
})
const probe = (code: string, steps = 3) => ({ action_type: 'run_training_probe', code, steps })

/** Trains three steps' worth and more; nothing in it is from a task. */
const SCRIPT = `
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.ones(8, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finished")
`

/** No tool earns anything or ends anything. */
function assertTool({ reward, done, shown, metadata }: MlDebugAnswer): void {
  assert.deepEqual([reward, done, shown.episode_done, shown.success], [null, false, false, false])
  assert.deepEqual([metadata.terminated, metadata.truncated], [false, false])
}

/** Define the tests of this group. */
export function toolTests(open: OpenEpisode): void {
  test('a reset shows the task, and every field a client may slice', async () => {
    const { id, initial } = await open({ task_id: 'task1', episode_id: 'mine' })
    const { shown, metadata, reward, done } = initial
    assert.deepEqual([id, shown.episode_id, shown.task_id, shown.action_type], ['mine', 'mine', 'task1', 'reset'])
    assert.deepEqual([shown.turn, shown.error, reward, done], [0, null, null, false])
    assert.match(shown.buggy_code, /import torch/)
    assert.ok(shown.task_description.length > 0)
    assert.deepEqual([shown.stdout, shown.losses, shown.results, shown.grader_details], ['', [], {}, {}])
    assert.deepEqual([metadata.max_turns, metadata.turns_remaining, metadata.seed], [10, 10, 1])
  })

  test('execute_snippet runs beside the data of the task and echoes a last expression', async () => {
    const { run } = await open()
    const answer = await run('import os\nprint(sorted(os.listdir(".")))\nlen(open("train.py").read()) > 100')
    assertTool(answer)
    assert.equal(answer.shown.stdout, "['config.json', 'data.npz', 'train.py', 'workbench.py']\nTrue\n")
    assert.deepEqual([answer.shown.exit_code, answer.shown.error, answer.shown.timed_out], [0, null, false])
    assert.equal(answer.metadata.reason, 'ok')
  })

  test('execute_snippet that fails says so in exit_code and stderr, not in error', async () => {
    const { run } = await open()
    for (const [code, words] of [
      ['print("before")\nraise ValueError("boom")', /ValueError: boom/],
      ['def broken(:', /SyntaxError/],
      ['import sys\nsys.exit(3)', /SystemExit/],
    ] as const) {
      const answer = await run(code)
      assertTool(answer)
      assert.deepEqual([answer.shown.exit_code, answer.shown.error], [1, null])
      assert.match(answer.shown.stderr, words)
    }
  })

  test('execute_snippet takes code in a fence', async () => {
    const { run } = await open()
    assert.equal((await run('Look:\n```python\nprint(6 * 7)\n```\nDone.')).shown.stdout, '42\n')
  })

  test('inspect_tensor describes a tensor, its gradient and what is not finite', async () => {
    const { act } = await open()
    const setup = 'import torch\nw = torch.tensor([1.0, 3.0], requires_grad=True)\nw.sum().backward()\nprint("set up")'
    const answer = await act(inspect('w', setup))
    assertTool(answer)
    const { shown } = answer
    assert.deepEqual([shown.error, shown.exit_code, shown.stdout], [null, 0, 'set up\n'])
    assert.deepEqual(
      [shown.shape, shown.dtype, shown.requires_grad, shown.grad_is_none],
      [[2], 'torch.float32', true, false],
    )
    assert.deepEqual(
      [shown.min_val, shown.max_val, shown.mean_val, shown.is_nan, shown.is_inf],
      [1, 3, 2, false, false],
    )
    const odd = (await act(inspect('torch.tensor([1.0, float("nan"), float("inf")])'))).shown
    assert.deepEqual([odd.is_nan, odd.is_inf, odd.max_val], [true, true, 1])
  })

  test('inspect_tensor tells why it can not', async () => {
    const { act } = await open()
    for (const [action, error] of [
      [inspect('  '), /^target_expression is empty/],
      [inspect(`${'x'.repeat(MAX_EXPRESSION_CHARS)}y`), /^target_expression is too long: 501 characters, at most 500/],
      [inspect('nowhere'), /^Failed to evaluate expression: NameError/],
      [inspect('"text"'), /neither a tensor nor a module/],
      [inspect('1', 'raise OSError("in the setup")'), /^OSError: in the setup/],
    ] as const) {
      const answer = await act(action)
      assertTool(answer)
      assert.match(answer.shown.error ?? '', error)
      assert.deepEqual([answer.shown.shape, answer.shown.dtype], [null, null])
      assert.ok((answer.shown.error ?? '').length <= 500)
    }
  })

  test('get_variable_state answers each expression by itself', async () => {
    const { act } = await open()
    const answer = await act(
      variables(['n', 'missing', 'm.shape', '1 / 0'], 'import torch\nn = 3\nm = torch.zeros(2, 5)'),
    )
    assertTool(answer)
    const { results } = answer.shown
    assert.deepEqual(Object.keys(results), ['n', 'missing', 'm.shape', '1 / 0'])
    assert.deepEqual([results.n?.repr, results.n?.type, results.n?.value, results.n?.error], ['3', 'int', 3, null])
    assert.match(results.missing?.error ?? '', /NameError/)
    assert.match(results['1 / 0']?.error ?? '', /ZeroDivisionError/)
    assert.equal(answer.shown.error, null)
  })

  test('get_variable_state takes ten expressions, and says what it left out', async () => {
    const { act } = await open()
    const { shown } = await act(variables(Array.from({ length: 13 }, (_, index) => String(index))))
    assert.equal(Object.keys(shown.results).length, 10)
    assert.match(shown.stderr, /note: 3 expressions were not evaluated/)
    assert.match((await act(variables([]))).shown.error ?? '', /^expressions is empty/)
    assert.match((await act(variables(['1', 'x'.repeat(600)]))).shown.error ?? '', /^expressions\[1\] is too long: 600/)
    assert.match((await act(variables(['1'], 'import nothing_here'))).shown.error ?? '', /^ModuleNotFoundError/)
  })

  test('run_training_probe stops after the steps it was asked for', async () => {
    const { act } = await open()
    const answer = await act(probe(SCRIPT, 3))
    assertTool(answer)
    const { shown } = answer
    assert.equal(shown.error, null)
    assert.equal(shown.losses.length, 3)
    assert.equal(shown.final_loss, shown.losses[2])
    assert.deepEqual([shown.loss_is_nan, shown.loss_is_inf, shown.optimizer_param_count], [false, false, 10])
    assert.equal(Object.keys(shown.grad_norms).length, 2)
    assert.ok(!shown.stdout.includes('finished'))
    assert.equal((shown.steps as unknown[]).length, 3)
  })

  test('run_training_probe without code probes the broken script', async () => {
    const { act } = await open()
    const { shown } = await act(probe(' ', 2))
    assert.equal(shown.error, null)
    assert.ok(shown.losses.length > 0 && Number(shown.optimizer_param_count) > 0)
  })

  test('run_training_probe shows what was measured before a crash, and the crash', async () => {
    const { act } = await open()
    const crashing = SCRIPT.replace(
      '    optimizer.zero_grad()',
      '    if step == 2: raise RuntimeError("in the loop")\n$&',
    )
    const { shown } = await act(probe(crashing, 5))
    assert.match(shown.error ?? '', /RuntimeError: in the loop/)
    assert.deepEqual([shown.losses.length, shown.exit_code], [2, 1])
    assert.match((await act(probe('def x(:'))).shown.error ?? '', /SyntaxError/)
  })

  test('run_training_probe that hangs ends at the limit, with what it measured', async () => {
    const { act } = await open()
    const hanging = SCRIPT.replace('    optimizer.zero_grad()', '    if step == 1:\n        while True: pass\n$&')
    const { shown, metadata } = await act(probe(hanging, 5), 3)
    assert.equal(shown.timed_out, true)
    assert.match(shown.error ?? '', /limit of 3 s/)
    assert.equal(shown.losses.length, 1)
    assert.equal(metadata.reason, 'timeout')
  })

  test('inspect_diff shows what diff -u shows, and runs nothing', async () => {
    const { act, initial } = await open()
    const proposed_code = `${initial.shown.buggy_code}raise SystemExit\n`
    const answer = await act({ action_type: 'inspect_diff', proposed_code })
    assertTool(answer)
    assert.match(answer.shown.diff, /^--- original\.py\n\+\+\+ proposed\.py\n@@ /)
    assert.match(answer.shown.diff, /^\+raise SystemExit$/m)
    assert.deepEqual([answer.shown.additions, answer.shown.deletions, answer.shown.lines_changed], [1, 0, 1])
    const fenced = await act({ action_type: 'inspect_diff', proposed_code: `\`\`\`python\n${proposed_code}\`\`\`` })
    assert.equal(fenced.shown.diff, answer.shown.diff)
    assert.match((await act({ action_type: 'inspect_diff' })).shown.error ?? '', /^proposed_code is empty/)
  })

  test('a report that agent code forged is an error, and sets nothing that is not its own', async () => {
    const { act, run } = await open()
    const forge = 'import sys\nknown = sys.modules["instruments.catalogue"].INSTRUMENTS\n'
    await run(`${forge}known["inspect_tensor"] = lambda scene, arguments: scene.report.update(shape="none", reward=1)`)
    const broken = await act(inspect('1'))
    assertTool(broken)
    assert.match(broken.shown.error ?? '', /^The measurement could not be read/)
    const report = '{"results": {}, "error": None, "success": True, "turn": 0, "done": True, "extra": 5}'
    await run(`${forge}known["variable_state"] = lambda scene, arguments: scene.report.update(${report})`)
    const forged = await act(variables(['1']))
    assertTool(forged)
    assert.deepEqual([forged.shown.error, forged.shown.turn, forged.shown.extra], [null, 4, 5])
  })

  test('code beyond the size that is taken is an error that names the field and the limit', async () => {
    const { act } = await open()
    const big = `# ${'ü'.repeat(MAX_CODE_BYTES / 2)}`
    for (const [action_type, field] of [
      ['execute_snippet', 'code'],
      ['run_training_probe', 'code'],
      ['inspect_tensor', 'setup_code'],
      ['inspect_diff', 'proposed_code'],
    ] as const) {
      const answer = await act({ action_type, [field]: big, target_expression: '1' })
      assertTool(answer)
      assert.equal(
        answer.shown.error,
        `${field} is too long: ${MAX_CODE_BYTES + 2} bytes, at most ${MAX_CODE_BYTES} are taken`,
      )
    }
    assert.equal((await act({ action_type: 'execute_snippet' })).shown.error, 'code is empty: there is nothing to run')
  })
}
