import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { openExecutor, run, type TestExecutor } from './open-executor.ts'

describe('the namespace of a worker', { concurrency: 1 }, () => {
  let service: TestExecutor
  let worker: EpisodeWorker
  before(async () => {
    service = await openExecutor()
    worker = await service.open({ variables: { context: 'text' }, seed: 7 })
  })
  after(() => service.executor.close())

  test('names survive from step to step, an exception included', async () => {
    const failed = await run(
      worker,
      'got = []\nfor i in range(5):\n  got.append(i)\n  if i == 3: raise ValueError("boom")',
    )
    assert.equal(failed.reason, 'exception')
    assert.equal(failed.locals.got, '[0, 1, 2, 3]')
    assert.equal((await run(worker, 'print(len(got))')).stdout.text, '4\n')
  })

  test('locals list new, rebound and changed names, and no others', async () => {
    await run(worker, 'a = 1\nb = [1]\nc = {"k": 1}\nd = 4\n_hidden = 5')
    const outcome = await run(worker, 'a = 2\nb.append(2)\nc["k"] = 2\nprint(d)\ne = 5')
    assert.deepEqual(outcome.locals, { a: '2', b: '[1, 2]', c: "{'k': 2}", e: '5' })
  })

  test('variables list public names, sorted', async () => {
    const { variables } = await run(worker, 'zz = 1\n_y = 2')
    assert.ok(variables.includes('zz') && variables.includes('context') && !variables.includes('_y'))
    assert.deepEqual(variables, [...variables].sort())
  })

  test('previews of big values are short and those of broken ones exist', async () => {
    const { locals } = await run(
      worker,
      'big = list(range(10**6))\nclass B:\n  def __repr__(self): raise SystemExit\nbad = B()',
    )
    assert.ok((locals.big ?? '').length <= 503)
    assert.equal(locals.bad, '<unrepresentable>')
  })

  test('names that no source could write are left out, and a flood of names is cut', async () => {
    const { reason, variables, locals } = await run(
      worker,
      'globals()[5] = 1\nglobals()["n" * 10**6] = 2\nglobals().update({f"v{i}": i for i in range(30_000)})',
    )
    assert.equal(reason, 'ok')
    assert.equal(variables.length, 10_000)
    assert.ok(Object.keys(locals).length <= 200)
    await run(worker, 'for i in range(30_000): del globals()[f"v{i}"]')
  })

  test('an answer of any size is no protocol violation', async () => {
    const outcome = await run(worker, 'answer["content"] = "\\ud800" * 10**7\nlen(FINAL("é" * 10**7))')
    assert.equal(outcome.reason, 'ok', outcome.exception ?? '')
    assert.equal(outcome.final?.length, 8 * 2 ** 20)
    await run(worker, 'answer["content"] = ""')
  })

  test('reserved names come back with a note', async () => {
    const outcome = await run(worker, 'context = "gone"\nFINAL = 3\nanswer = 42')
    assert.match(outcome.stderr.text, /put back after this step: .*context.*FINAL.*answer/)
    const next = await run(worker, 'print(context, answer["ready"]); FINAL("ok")')
    assert.equal(next.stdout.text, "text False\n'FINAL(ok)'\n")
    assert.equal(next.final, 'ok')
  })

  test('FINAL survives the crash of its own step', async () => {
    const outcome = await run(worker, 'FINAL("first"); FINAL("second")\nimport os; os._exit(1)')
    assert.equal(outcome.reason, 'exited')
    assert.equal(outcome.final, 'first')
  })

  test('answer is ready only for the boolean True', async () => {
    const truthy = await run(worker, 'answer["content"] = 5; answer["ready"] = "no"')
    assert.deepEqual(truthy.answer, { ready: false, content: '5' })
    const ready = await run(worker, 'answer["ready"] = True')
    assert.deepEqual(ready.answer, { ready: true, content: '5' })
  })

  test('tracebacks hold the agent frames only, with the right lines of earlier cells', async () => {
    await run(worker, 'def boom(n):\n    return 1 / n')
    const { exception } = await run(worker, 'boom(0)')
    assert.match(exception ?? '', /^ZeroDivisionError: division by zero\nTraceback/)
    assert.match(exception ?? '', /return 1 \/ n/)
    assert.doesNotMatch(exception ?? '', /worker|cell\.py|exec\(/)
  })

  test('a thread that prints later is heard in the step that comes then', async () => {
    await run(
      worker,
      'import threading\ngo = threading.Event()\nt = threading.Thread(target=lambda: (go.wait(), print("late")))\nt.start()',
    )
    const outcome = await run(worker, 'go.set(); t.join()')
    assert.equal(outcome.stdout.text, 'late\n')
  })

  test('classes pickle and multiprocessing finds them', async () => {
    const code =
      'import pickle\nclass P: pass\nprint(type(pickle.loads(pickle.dumps(P()))).__name__)\nimport multiprocessing as mp\ndef f(x): return x * 2\nwith mp.Pool(2) as pool: print(pool.map(f, [1, 2, 3]))'
    const outcome = await run(worker, code)
    assert.equal(outcome.stdout.text, 'P\n[2, 4, 6]\n', outcome.stderr.text)
  })

  test('the same seed gives the same draws, no seed gives others', async () => {
    const draw = async (seed: number | null) => {
      const other = await service.open({ seed })
      const { stdout } = await run(other, 'import random; print(random.random())')
      other.close()
      return stdout.text
    }
    assert.equal(await draw(3), await draw(3))
    assert.notEqual(await draw(null), await draw(null))
  })

  test('lookup() answers the text of the first variable that has a value, or null', async () => {
    await run(worker, 'value = [1, 2]\nnothing = None')
    assert.deepEqual(await worker.lookup(['missing', 'nothing', 'value']), { value: '[1, 2]', state_kept: true })
    assert.deepEqual(await worker.lookup(['missing', 'nothing']), { value: null, state_kept: true })
  })

  test('lookup() of a value whose text never comes says that the state is lost, and the next step works', async () => {
    await run(worker, 'class S:\n  def __str__(self):\n    while True: pass\ns = S()')
    assert.deepEqual(await worker.lookup(['s']), { value: null, state_kept: false })
    assert.equal((await run(worker, 'print("alive")')).stdout.text, 'alive\n')
  })

  test('a whole standard library is there', async () => {
    const outcome = await run(
      worker,
      'import sqlite3, ssl, hashlib, zlib, csv, json, re, asyncio, concurrent.futures, decimal, lzma\nprint(sqlite3.connect(":memory:").execute("select 6*7").fetchone())\nasync def f(): return 5\nprint(asyncio.run(f()))',
    )
    assert.equal(outcome.stdout.text, '(42,)\n5\n', outcome.stderr.text)
  })
})
