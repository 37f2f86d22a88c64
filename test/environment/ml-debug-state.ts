/** What stays between the calls of an ml_debug episode, and what comes back when its process is lost. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../executor/service-process.ts'
import type { OpenEpisode } from './ml-debug-tools.ts'

/** Can't be interrupted: only the end of its process ends it. */
const DEAF = `import time
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass`

/**
 * Define the tests of this group.
 *
 * @param busyWorkers Processes that episodes have.
 */
export function stateTests(open: OpenEpisode, busyWorkers: () => number): void {
  test('what one tool sets up, every other finds', async () => {
    const { act, run } = await open()
    await act({ action_type: 'inspect_tensor', setup_code: 'import torch\na = torch.ones(3)', target_expression: 'a' })
    await act({ action_type: 'get_variable_state', setup_code: 'b = a * 2', expressions: ['b'] })
    assert.equal((await run('c = (a + b).sum().item()\nc')).shown.stdout, '9.0\n')
    const { shown } = await act({ action_type: 'get_variable_state', expressions: ['c'] })
    assert.equal(shown.results.c?.value, 9)
  })

  test('a fresh call finds nothing, and leaves nothing', async () => {
    const { act, run } = await open()
    await run('a = 1')
    const names = `sorted(name for name in globals() if len(name) == 1)`
    const fresh = await act({ action_type: 'execute_snippet', code: `b = 2\nprint(${names})`, fresh: true })
    assert.equal(fresh.shown.stdout, "['b']\n")
    const tensor = { action_type: 'inspect_tensor', setup_code: 'c = 3', target_expression: 'c', fresh: 'yes' }
    assert.equal((await act(tensor)).shown.max_val, 3)
    assert.match(
      (await act({ action_type: 'get_variable_state', expressions: ['a'], fresh: true })).shown.results.a?.error ?? '',
      /NameError/,
    )
    assert.equal((await run(names)).shown.stdout, "['a']\n")
  })

  test('a probe leaves the variables of the episode as they are', async () => {
    const { act, run } = await open()
    await run('a = 1')
    const code = 'import torch\na = 2\nm = torch.nn.Linear(1, 1)\nm(torch.ones(1)).sum().backward()'
    assert.equal((await act({ action_type: 'run_training_probe', code })).shown.error, null)
    assert.equal((await run('print(a, "m" in globals())')).shown.stdout, '1 False\n')
  })

  test('a setup that hangs costs its turn and nothing else', async () => {
    const { act, run } = await open()
    await run('kept = 41')
    const setup_code = 'import time\ntime.sleep(60)'
    const { shown, metadata } = await act({ action_type: 'inspect_tensor', setup_code, target_expression: 'kept' }, 0.3)
    assert.equal(shown.error, 'Timed out: the call ran past its limit of 0.3 s')
    assert.deepEqual([shown.timed_out, shown.exit_code, metadata.state_kept], [true, 1, true])
    const after = await run('kept + 1')
    assert.equal(after.shown.stdout, '42\n')
    assert.ok(!('state_restored' in after.metadata))
  })

  test('a setup that can not even be interrupted loses the process, and the next call finds all that was there', async () => {
    const { act, run } = await open()
    const drawn = (await run('import random, torch\na = random.random()\nt = torch.rand(2)\nprint(a, t)')).shown.stdout
    await act({ action_type: 'inspect_tensor', setup_code: 'b = t * 2', target_expression: 'b' })
    await run('open("note.txt", "w").write("x")\nc = 3\nraise ValueError("after all that")')
    const lost = await act({ action_type: 'get_variable_state', setup_code: DEAF, expressions: ['a'] }, 0.3)
    assert.deepEqual([lost.shown.timed_out, lost.metadata.state_kept, lost.metadata.reason], [true, false, 'timeout'])
    assert.match(lost.shown.stderr, /note: the Python process was replaced because it ran past its time limit: what/)
    const back = await run('print(a, t)\nprint(c, torch.equal(b, t * 2), open("note.txt").read())')
    assert.equal(back.shown.stdout, `${drawn}3 True x\n`)
    assert.deepEqual([back.metadata.state_restored, back.metadata.missing_turns], [false, [4]])
    assert.match(
      back.shown.stderr,
      /note: the Python process was new: .* except for turn 4: what only it set up is gone/,
    )
    assert.ok(!('state_restored' in (await run('a')).metadata))
  })

  test('a process that dies between two calls is noticed, and the state is back at once', async () => {
    const { act, run } = await open()
    await run('a = 5')
    const code = 'import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.3), os._exit(1))).start()'
    const workers = busyWorkers()
    assert.equal((await act({ action_type: 'execute_snippet', code, fresh: true })).metadata.state_kept, true)
    await until(() => busyWorkers() < workers, 'the process is still there')
    const { shown, metadata } = await run('a')
    assert.deepEqual([shown.stdout, metadata.state_restored], ['5\n', true])
  })

  test('cells that can not run again are named', async () => {
    const { act, run } = await open()
    await run('a = 1')
    await run('import time\nb = 1\ntime.sleep(60)', 0.3)
    await act({ action_type: 'execute_snippet', code: DEAF }, 0.3)
    const { shown, metadata } = await run('print(a, "b" in globals())')
    assert.equal(shown.stdout, '1 False\n')
    assert.deepEqual([metadata.state_restored, metadata.missing_turns], [false, [2, 3]])
    assert.match(shown.stderr, /except for turns 2, 3: what only they set up is gone/)
  })

  test('a fresh call that loses the process costs the variables nothing either', async () => {
    const { act, run } = await open()
    await run('a = 1')
    await act({ action_type: 'execute_snippet', code: 'import os\nos._exit(1)', fresh: true })
    const { shown, metadata } = await run('a')
    assert.deepEqual([shown.stdout, metadata.state_restored], ['1\n', true])
  })

  test('what a fresh call draws at random after a loss changes no variable that comes back', async () => {
    const { act, run } = await open()
    const drawn = (await run('import random\na = random.random()\nprint(a)')).shown.stdout
    await run('import os\nos._exit(1)')
    await act({ action_type: 'execute_snippet', code: 'import random\nrandom.random()', fresh: true })
    assert.equal((await run('print(a)')).shown.stdout, drawn)
  })

  test('a first call that loses the process says that there was nothing to lose', async () => {
    const { run } = await open()
    const { shown } = await run('import os\nos._exit(1)')
    assert.match(shown.stderr, /note: the Python process was replaced because it exited: it had no variables yet\./)
    assert.equal((await run('1')).shown.stdout, '1\n')
  })

  test('the same seed has the same data, another seed other data, and no episode sees another', async () => {
    const look =
      'import workbench, hashlib\nprint(workbench.load_config(), hashlib.md5(open("data.npz", "rb").read()).hexdigest())'
    const seen: string[] = []
    for (const seed of [1, 1, 2, -1, 2 ** 32 + 1]) seen.push((await (await open({ seed })).run(look)).shown.stdout)
    const [first, again, other, negative, folded] = seen
    assert.equal(first, again)
    assert.equal(first, folded)
    assert.equal(new Set([first, other, negative]).size, 3)
  })
}
