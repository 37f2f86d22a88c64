import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { RealRepl } from '../fixtures/real-repl.ts'

const endings: [string, string][] = [
  ['print("FINAL(max(3, (4)))")', 'max(3, (4))'],
  ['print(FINAL((1, 2)))', '(1, 2)'],
  ['FINAL(42)', '42'],
  ['FINAL(42)\nx = 1', '42'],
  ['x = 5\nprint(f"FINAL({x})")', '5'],
  ['FINAL("first")\nFINAL("second")', 'first'],
  ['FINAL("a\\nb \\"c\\"")', 'a\nb "c"'],
  ['print("FINAL(line one\\nline two)")', 'line one\nline two'],
  ['value = [1, 2]\nprint(FINAL_VAR("value"))', '[1, 2]'],
  ['value = [1, 2]\nprint("FINAL_VAR(value)")', '[1, 2]'],
  ['print("FINAL(printed)")\nraise ValueError("late")', 'printed'],
  ['FINAL("called")\nraise ValueError("late")', 'called'],
  ['print("x" * 20_000)\nprint("FINAL(late)")\nprint("x" * 20_000)', 'late'],
  ['answer["content"] = 7\nanswer["ready"] = True', '7'],
  ['answer["content"] = 7\nanswer["ready"] = True\n1/0', '7'],
  ['answer = {"content": "new dict", "ready": True}', 'new dict'],
  ['print("FINAL(printed)")\nFINAL("called")', 'called'],
]

const nonEndings: string[] = [
  'print("FINAL(1")',
  'print("NOTFINAL(3)")',
  'print("To end, print FINAL(answer) on a line.")',
  'prompt = "say FINAL(42)"',
  'prompt = "say FINAL(42)"\nprompt',
  '"FINAL(42)"',
  'print(context)',
  'for line in context.splitlines(): print(line)',
  'print(FINAL_VAR("missing"))',
  'nothing = None\nprint("FINAL_VAR(nothing)")',
  'answer = 42',
  'answer["ready"] = "no"',
  'answer["ready"] = 1',
]

suite('repl endings', () => {
  let repl: RealRepl
  before(async () => {
    repl = await RealRepl.start()
  })
  after(() => repl.close())

  for (const [code, wanted] of endings) {
    test(`${JSON.stringify(code)} ends with ${JSON.stringify(wanted)}`, async () => {
      const { run, state } = await repl.open({ expected_answer: wanted })
      const { metadata, done, reward } = await run(code)
      assert.deepEqual([done, metadata.final_answer, reward], [true, wanted, 1])
      assert.deepEqual([metadata.terminated, metadata.truncated], [true, false])
      assert.equal(state().final_answer, wanted)
    })
  }

  for (const code of nonEndings) {
    test(`${JSON.stringify(code)} ends nothing`, async () => {
      const { run } = await repl.open({ context: 'A story.\nFINAL(fake)\nFINAL_VAR(context)\nThe end.' })
      const { metadata, done, reward } = await run(code)
      assert.deepEqual([done, metadata.final_answer, reward], [false, null, 0])
    })
  }

  test('stderr says why a printed text from the context ended nothing', async () => {
    const { run } = await repl.open({ context: 'x\nFINAL(fake)\n' })
    assert.match((await run('print(context)')).shown.result.stderr, /^note: .*context.*FINAL\(value\)/)
    const { metadata, done } = await run('print("FINAL(real)")')
    assert.deepEqual([done, metadata.final_answer], [true, 'real'])
  })

  test('stderr says that FINAL_VAR found nothing, once', async () => {
    const { run } = await repl.open()
    for (const code of ['print(FINAL_VAR("missing"))', 'print("FINAL_VAR(missing)")']) {
      assert.equal((await run(code)).shown.result.stderr.match(/missing/g)?.length, 1, code)
    }
  })

  test('the answer dict works again in the step after it was replaced by something else', async () => {
    const { run } = await repl.open()
    assert.equal((await run('answer = 42')).done, false)
    const { metadata, done } = await run('answer["content"] = "x"; answer["ready"] = True')
    assert.deepEqual([done, metadata.final_answer], [true, 'x'])
  })

  test('an ending keeps the output and the names of its step', async () => {
    const { run } = await repl.open({ context: 'abc' })
    const { shown, metadata, done } = await run('n = len(context)\nprint("counted")\nFINAL(n)')
    assert.equal(done, true)
    assert.match(shown.result.stdout, /^counted\n/)
    assert.equal(shown.context_length, 3)
    assert.ok(shown.available_variables.includes('n'))
    assert.equal(metadata.total_iterations, 1)
    assert.equal(typeof metadata.total_execution_time, 'number')
  })

  test('is_final submits without running, and shows nothing of the context', async () => {
    const { run, submit, state } = await repl.open({ context: 'abc', expected_answer: 'Paris' })
    await run('x = 1')
    const { shown, metadata, reward, done } = await submit(' paris ')
    assert.equal(shown.result.stdout, 'Final answer submitted.')
    assert.deepEqual([shown.result.success, shown.result.exception], [true, null])
    assert.deepEqual([shown.context_preview, shown.context_length, shown.available_variables], [null, 0, []])
    assert.deepEqual([done, reward, metadata.final_answer], [true, 1, ' paris '])
    assert.deepEqual([metadata.total_iterations, state().step_count], [2, 2])
  })

  test('is_final without an answer submits an empty one', async () => {
    const { submit } = await repl.open()
    const { metadata, reward, done } = await submit(null)
    assert.deepEqual([done, reward, metadata.final_answer], [true, 1, ''])
  })

  test('a step after the end repeats the last observation, runs nothing and is worth nothing', async () => {
    const { run, state } = await repl.open({ expected_answer: 'x' })
    const last = await run('print("done")\nFINAL("x")')
    const before = state()
    const again = await run('FINAL("y")')
    assert.deepEqual([again.done, again.reward, again.metadata.repeated], [true, 0, true])
    assert.deepEqual({ ...again.shown, metadata: null }, { ...last.shown, metadata: null })
    assert.equal(again.metadata.final_answer, 'x')
    assert.deepEqual(again.shown.metadata, again.metadata)
    assert.deepEqual(state(), before)
  })

  test('without expected_answer any answer is worth 1', async () => {
    const { run } = await repl.open()
    assert.equal((await run('FINAL("whatever")')).reward, 1)
  })

  test('with expected_answer a wrong one is worth 0, and no reason gives the right one away', async () => {
    const { run, initial } = await repl.open({ expected_answer: 731 })
    assert.equal(initial.reward, null)
    const { reward, metadata } = await run('FINAL(5)')
    assert.equal(reward, 0)
    assert.doesNotMatch(JSON.stringify({ ...metadata, usage: null }), /731/)
  })
})
