import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { SessionTable } from '../../src/environment/sessions.ts'
import { RealRepl } from '../fixtures/real-repl.ts'

const LIMIT_TEXT = 'Maximum iterations (2) reached.'
const twoSteps = { REPL_MAX_ITERATIONS: '2' }
const originalTwoSteps = { ...twoSteps, REPL_RUN_LAST_STEP: 'false' }

suite('repl limits', () => {
  let repl: RealRepl
  before(async () => {
    repl = await RealRepl.start({ EPISODE_MEMORY_MIB: '512' })
  })
  after(() => repl.close())

  test('the step that reaches the limit is run and then ends the episode', async () => {
    const { run } = await repl.open({ context: 'abc' }, twoSteps)
    assert.equal((await run('x = 1')).done, false)
    const { shown, metadata, reward, done } = await run('print(x)')
    assert.equal(shown.result.stdout, `1\n${LIMIT_TEXT}`)
    assert.deepEqual([shown.result.success, shown.result.exception, shown.context_length], [false, null, 3])
    assert.deepEqual([done, reward, metadata.final_answer], [true, -0.1, null])
    assert.deepEqual([metadata.terminated, metadata.truncated, metadata.reason], [false, true, 'ok'])
  })

  test('the step that reaches the limit may still give the answer', async () => {
    const { run } = await repl.open({ expected_answer: 1 }, twoSteps)
    await run('x = 1')
    const { shown, metadata, reward, done } = await run('FINAL(x)')
    assert.deepEqual([done, reward, metadata.final_answer, shown.result.success], [true, 1, '1', true])
    assert.doesNotMatch(shown.result.stdout, /Maximum/)
  })

  test('at the limit a draft in the answer dict is graded when an answer is expected', async () => {
    const { run, state } = await repl.open({ expected_answer: 'right' }, twoSteps)
    await run('answer["content"] = "right"')
    const { shown, metadata, reward } = await run('pass')
    assert.deepEqual([reward, metadata.final_answer, shown.result.success], [1, 'right', false])
    assert.equal(state().final_answer, 'right')
  })

  test('at the limit a draft is worth no more than none when no answer is expected', async () => {
    const { run } = await repl.open({}, twoSteps)
    await run('answer["content"] = "draft"')
    const { metadata, reward } = await run('pass')
    assert.deepEqual([reward, metadata.final_answer], [-0.1, 'draft'])
  })

  test('REPL_RUN_LAST_STEP=false ends without running, as the original does', async () => {
    const { run } = await repl.open({ context: 'abc', expected_answer: 'right' }, originalTwoSteps)
    await run('answer["content"] = "right"')
    const { shown, metadata, reward, done } = await run('answer["content"] = "wrong"')
    assert.equal(shown.result.stdout, LIMIT_TEXT)
    assert.deepEqual([shown.context_preview, shown.context_length, shown.available_variables], [null, 0, []])
    assert.deepEqual([done, reward, metadata.final_answer, shown.result.success], [true, 1, 'right', false])
  })

  test('a sleeping step is cut at its own limit and keeps its names', async () => {
    const { run } = await repl.open()
    const { shown, metadata, reward } = await run('kept = 1\nprint("before")\nimport time\ntime.sleep(30)', 0.5)
    assert.equal(shown.result.stdout, 'before\n')
    assert.match(shown.result.exception ?? '', /time/i)
    assert.deepEqual([metadata.reason, metadata.state_kept, reward], ['timeout', true, -0.05])
    assert.equal((await run('print(kept)')).shown.result.stdout, '1\n')
  })

  test('a step without a limit of its own takes the configured one, and no caller passes the ceiling', async () => {
    const { run } = await repl.open({}, { STEP_TIMEOUT_S: '0.3', STEP_CEILING_S: '1' })
    assert.equal((await run('while True: pass')).metadata.reason, 'timeout')
    for (const odd of [Number.NaN, -1, 0]) {
      assert.equal((await run('while True: pass', odd)).metadata.reason, 'timeout', String(odd))
    }
    assert.match((await run('while True: pass', 1000)).shown.result.exception ?? '', /limit of 1 s/)
  })

  test('a lost process is replaced, and the agent is told what is there again', async () => {
    const { run } = await repl.open({ context: 'abcdef' })
    await run('mine = 1')
    const { shown, metadata, reward } = await run('print("last words", flush=True)\nimport os\nos.kill(os.getpid(), 9)')
    assert.equal(shown.result.stdout, 'last words\n')
    assert.deepEqual([metadata.reason, metadata.state_kept, reward], ['signal', false, -0.05])
    assert.match(shown.result.stderr, /note: the Python process was replaced.*`context`.*other variables are gone/)
    assert.ok(!shown.available_variables.includes('mine'))
    assert.ok(shown.available_variables.includes('context'))
    const next = await run('print(len(context), "mine" in globals())')
    assert.equal(next.shown.result.stdout, '6 False\n')
  })

  test('taking all memory is named and survived', async () => {
    const { run } = await repl.open()
    const { shown, metadata } = await run('hog = []\nwhile True:\n    hog.append("x" * 10**7)')
    assert.equal(shown.result.success, false)
    assert.match(`${shown.result.exception} ${metadata.reason}`, /MemoryError|memory_limit/)
    assert.equal((await run('print("alive")')).shown.result.stdout, 'alive\n')
  })

  test('a flood of output is counted, not kept, and does not hide the ending', async () => {
    const { run } = await repl.open()
    const { metadata, done } = await run('for _ in range(800): print("x" * 65_535)\nprint("FINAL(after)")')
    assert.deepEqual([done, metadata.final_answer], [true, 'after'])
    const { stdout } = metadata.output as { stdout: { total_bytes: number } }
    assert.equal(stdout.total_bytes, 800 * 65_536 + 'FINAL(after)\n'.length)
  })

  test('an answer given in a step that was killed still counts', async () => {
    const { run } = await repl.open({ expected_answer: 'x' })
    const { metadata, reward, done } = await run('FINAL("x")\nimport os\nos.kill(os.getpid(), 9)')
    assert.deepEqual([done, reward, metadata.final_answer, metadata.reason], [true, 1, 'x', 'signal'])
  })

  test('a session closed while a step runs frees its slot at once, and the step is refused', async () => {
    const table = new SessionTable({ environments: [repl.environment()], capacity: 1, idleMs: 0, lifetimeMs: 0 })
    const session = table.open('repl')
    await session.reset({})
    const step = session.step({ code: 'import time\ntime.sleep(30)' }, {})
    // Handled before it is awaited.
    step.catch(() => undefined)
    await new Promise(setImmediate)
    session.close('client')
    assert.equal(table.active, 0)
    await assert.rejects(step, { code: 'episode_not_found' })
    table.open('repl').close('client')
  })
})
