import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { RealRepl } from '../fixtures/real-repl.ts'

suite('repl', () => {
  let repl: RealRepl
  before(async () => {
    repl = await RealRepl.start()
  })
  after(() => repl.close())

  test('a reset says what is there', async () => {
    const { initial, id } = await repl.open({ context: 'Grüße 🙂', task_prompt: 'Count.', episode_id: 'mine' })
    assert.equal(id, 'mine')
    assert.equal(
      initial.shown.result.stdout,
      'REPL environment initialized.\n' +
        "Context loaded (7 chars). Use 'context' variable to access it.\n" +
        'Task: Count.\n' +
        "Use answer['content'] to store your answer, and set answer['ready'] = True when done.",
    )
    const { result, available_variables: names, ...rest } = initial.shown
    assert.deepEqual(rest, {
      context_preview: 'Grüße 🙂',
      context_length: 7,
      iteration: 0,
      max_iterations: 30,
      metadata: { task_prompt: 'Count.', message: 'Environment ready.' },
    })
    assert.deepEqual([result.stderr, result.success, result.exception], ['', true, null])
    for (const name of ['answer', 'context', 'FINAL', 'FINAL_VAR', 'SHOW_VARS', 'llm_query', 'llm_query_batched']) {
      assert.ok(names.includes(name), name)
    }
    assert.deepEqual([initial.reward, initial.done], [0, false])
  })

  test('a reset without context binds none', async () => {
    const { initial, run } = await repl.open()
    assert.equal(initial.shown.context_preview, null)
    assert.equal(initial.shown.context_length, 0)
    assert.ok(!initial.shown.available_variables.includes('context'))
    assert.match((await run('context')).shown.result.exception ?? '', /^NameError/)
  })

  test('a reset falls back to the configured context and task', async () => {
    const { initial } = await repl.open({ context: '' }, { REPL_CONTEXT: 'abc', REPL_TASK_PROMPT: 'Do it.' })
    assert.equal(initial.shown.context_preview, 'abc')
    assert.equal(initial.metadata.task_prompt, 'Do it.')
  })

  test('variables persist, a last expression is echoed as Python would, an assignment is not', async () => {
    const { run } = await repl.open()
    assert.equal((await run("x = 'a' * 3")).shown.result.stdout, '')
    assert.equal((await run('x')).shown.result.stdout, "'aaa'\n")
    assert.equal((await run('print("p", end="!")\nNone')).shown.result.stdout, 'p!')
    assert.equal((await run('import sqlite3, os\nlen(os.listdir("/")) > 0')).shown.result.stdout, 'True\n')
  })

  test('a step reports new and modified names, its time, and what it used', async () => {
    const { run, state } = await repl.open()
    await run('numbers = [1]\nother = 5')
    const { shown, metadata, reward, done } = await run('numbers.append(2)\nfresh = "x"')
    assert.deepEqual(shown.result.locals_snapshot, { numbers: '[1, 2]', fresh: "'x'" })
    assert.ok(shown.result.execution_time > 0)
    assert.ok(shown.available_variables.includes('fresh'))
    assert.deepEqual([shown.iteration, reward, done], [2, 0, false])
    assert.deepEqual([metadata.reason, metadata.state_kept, metadata.final_answer], ['ok', true, null])
    assert.deepEqual([metadata.terminated, metadata.truncated], [false, false])
    assert.deepEqual(shown.metadata, metadata)
    const usage = metadata.usage as Record<string, unknown>
    for (const key of ['wall_ms', 'subcall_wait_ms', 'queued_ms']) assert.equal(typeof usage[key], 'number', key)
    assert.ok(Number(state().total_execution_time) > shown.result.execution_time)
  })

  test('a failing step keeps its prints and names, and costs 0.05', async () => {
    const { run } = await repl.open()
    const { shown, metadata, reward } = await run('kept = 1\nprint("before")\nraise ValueError("boom")')
    assert.equal(shown.result.stdout, 'before\n')
    assert.match(shown.result.exception ?? '', /^ValueError: boom\n/)
    assert.match(shown.result.exception ?? '', /line 3/)
    assert.match(shown.result.stderr, /^ValueError: boom\n/)
    assert.equal(shown.result.locals_snapshot.kept, '1')
    assert.deepEqual([shown.result.success, reward, metadata.reason], [false, -0.05, 'exception'])
  })

  test('a syntax error shows nothing of the step before', async () => {
    const { run } = await repl.open()
    await run('print("one")')
    const { shown, reward } = await run('x = = 1')
    assert.equal(shown.result.stdout, '')
    assert.match(shown.result.exception ?? '', /^SyntaxError/)
    assert.equal(reward, -0.05)
  })

  test('long output is cut in the observation and counted in the metadata', async () => {
    const { run } = await repl.open()
    const { shown, metadata } = await run('print("a" * 20_000)')
    assert.ok(shown.result.stdout.length < 9000)
    const { stdout } = metadata.output as { stdout: Record<string, unknown> }
    assert.deepEqual(stdout, { total_chars: 20_001, total_bytes: 20_001, truncated: true })
  })

  test('context and helpers are back in the step after they were overwritten', async () => {
    const { run } = await repl.open({ context: 'abcdef' })
    await run('llm_query = None\ncontext = "gone"\nFINAL = 3')
    const { shown, metadata, done } = await run('print(len(context)); print(FINAL("ok"))')
    assert.match(shown.result.stdout, /^6\n/)
    assert.deepEqual([done, metadata.final_answer], [true, 'ok'])
  })

  test('raw bytes on stdout are plain output', async () => {
    const { run } = await repl.open()
    const { shown } = await run(
      'import os, sys\nos.write(1, b\'{"id": 1, "ok": true}\\n\')\n' +
        'sys.__stdout__.write("raw\\n"); sys.__stdout__.flush()\nprint("end")',
    )
    assert.equal(shown.result.stdout, '{"id": 1, "ok": true}\nraw\nend\n')
    assert.equal((await run('print("next")')).shown.result.stdout, 'next\n')
  })

  test('sub-model calls reach the service and answer a text that says what is missing', async () => {
    const { run } = await repl.open()
    const { shown } = await run(
      'print(llm_query("hi"))\nr = llm_query_batched(["a", "b"])\nprint(len(r), r[1][:7], llm_batch([]))\n' +
        'print(rlm_query("hi", model="m")[:7], len(rlm_query_batched(["a"])))',
    )
    const [single, batch, recursive] = shown.result.stdout.trim().split('\n')
    assert.match(single ?? '', /^Error: .*LLM_MODEL/)
    assert.equal(batch, '2 Error:  []')
    assert.equal(recursive, 'Error:  1')
  })

  test('a seed makes the generators repeat, an odd one harms nothing', async () => {
    const draw = async (seed: unknown) => {
      const { run } = await repl.open({ seed })
      return (await run('import random\nrandom.random()')).shown.result.stdout
    }
    assert.equal(await draw(7), await draw(7))
    assert.notEqual(await draw(7), await draw(8))
    assert.equal(await draw(-5), await draw(-5))
  })

  test('state holds the whole episode, but neither ground truth nor key', async () => {
    const { run, state } = await repl.open({
      context: 'ctx',
      task_prompt: 'task',
      expected_answer: 'groundtruth',
      hf_token: 'hf_secret',
    })
    const { shown } = await run('x = 1')
    const { total_execution_time, namespace_keys, episode_id, ...rest } = state()
    assert.deepEqual(rest, {
      step_count: 1,
      context: 'ctx',
      task_prompt: 'task',
      iteration: 1,
      max_iterations: 30,
      final_answer: null,
    })
    assert.deepEqual(namespace_keys, shown.available_variables)
    assert.equal(typeof episode_id, 'string')
    assert.equal(typeof total_execution_time, 'number')
    assert.doesNotMatch(JSON.stringify(state()), /groundtruth|hf_secret/)
    assert.match((await run('import os\nos.environ')).shown.result.stdout, /^environ/)
    assert.doesNotMatch((await run('import os\nprint(os.environ)')).shown.result.stdout, /hf_secret/)
  })
})
