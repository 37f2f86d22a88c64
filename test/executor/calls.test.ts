import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker, WorkerCall } from '../../src/executor/executor.ts'
import { openExecutor, run, type TestExecutor } from './open-executor.ts'

describe('calls from agent code to the service', { concurrency: 1 }, () => {
  let service: TestExecutor
  let worker: EpisodeWorker
  let answer: (call: WorkerCall) => Promise<unknown>
  before(async () => {
    service = await openExecutor({ STEP_GRACE_S: '0.3' })
    worker = await service.open({
      call_helpers: ['llm_query', 'llm_query_batched'],
      onCall: call => answer(call),
    })
  })
  after(() => service.executor.close())

  test('a call carries its arguments and returns the answer', async () => {
    answer = async ({ name, arguments: given }) => `${name} ${JSON.stringify(given)}`
    const { stdout } = await run(worker, 'print(llm_query("hi", model="m"))\nprint(llm_query_batched(["a", "b"]))')
    assert.equal(
      stdout.text,
      'llm_query {"prompt":"hi","model":"m"}\nllm_query_batched {"prompts":["a","b"],"model":null}\n',
    )
  })

  test('a refused call is an exception in Python, and the next works', async () => {
    answer = async ({ arguments: { prompt } }) => {
      if (prompt === 'bad') throw new Error('no model is configured')
      return 'fine'
    }
    const { stdout } = await run(
      worker,
      'try: llm_query("bad")\nexcept RuntimeError as e: print(type(e).__name__, e)\nprint(llm_query("good"))',
    )
    assert.equal(stdout.text, 'CallFailed no model is configured\nfine\n')
  })

  test('arguments too long for a frame are an exception in Python', async () => {
    answer = async () => 'fine'
    const { stdout } = await run(
      worker,
      'try: llm_query("x" * 70 * 2**20)\nexcept RuntimeError as e: print(str(e)[:30])\nprint(llm_query("y"))',
      20_000,
    )
    assert.equal(stdout.text, 'the arguments are too long: ca\nfine\n')
  })

  test('threads call side by side and each gets its own answer', async () => {
    let together = 0
    let most = 0
    const gate = Promise.withResolvers<void>()
    answer = async ({ arguments: { prompt } }) => {
      most = Math.max(most, ++together)
      if (together === 8) gate.resolve()
      await gate.promise
      return `answer ${prompt}`
    }
    const code =
      'from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) as pool: print(list(pool.map(llm_query, map(str, range(8)))))'
    const { stdout } = await run(worker, code)
    assert.equal(stdout.text, `[${Array.from({ length: 8 }, (_, i) => `'answer ${i}'`).join(', ')}]\n`)
    assert.equal(most, 8)
  })

  test('asyncio code calls through threads', async () => {
    answer = async ({ arguments: { prompt } }) => `<${prompt}>`
    const code =
      'import asyncio\nasync def main(): return await asyncio.gather(*(asyncio.to_thread(llm_query, str(i)) for i in range(4)))\nprint(asyncio.run(main()))'
    assert.equal((await run(worker, code)).stdout.text, "['<0>', '<1>', '<2>', '<3>']\n")
  })

  test('waiting for an answer is not charged to the limit, and is reported', async () => {
    answer = () => new Promise(resolve => setTimeout(resolve, 700, 'late'))
    const outcome = await run(worker, 'print(llm_query("x"))', 300)
    assert.equal(outcome.stdout.text, 'late\n')
    assert.equal(outcome.reason, 'ok')
    assert.ok(outcome.usage.subcall_wait_ms >= 650)
    assert.equal((await run(worker, 'while True: pass', 300)).reason, 'timeout')
  })

  test('a loop that runs while a thread waits is not protected once the answer is there', async () => {
    answer = () => new Promise(resolve => setTimeout(resolve, 200, 'x'))
    const code = 'import threading\nthreading.Thread(target=llm_query, args=("x",)).start()\nwhile True: pass'
    const outcome = await run(worker, code, 300)
    assert.equal(outcome.reason, 'timeout')
    assert.equal(outcome.state_kept, true)
  })

  test('the signal of a call in flight aborts when its step ends', async () => {
    const aborted = Promise.withResolvers<void>()
    answer = ({ signal }) => new Promise(() => signal.addEventListener('abort', () => aborted.resolve()))
    await run(
      worker,
      'import threading\nt = threading.Thread(target=llm_query, args=("x",), daemon=True); t.start()\nimport time; time.sleep(0.2)',
    )
    await aborted.promise
    answer = async () => 'next'
    assert.equal((await run(worker, 'print(llm_query("y"))')).stdout.text, 'next\n')
  })

  test('a frame that agent code writes to the channel can not answer for another step', async () => {
    const forge =
      'import os, json, stat\nfor fd in range(3, 64):\n  try:\n    if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, b\'{"type":"result","id":999,"exception":null,"interrupted":false,"locals":{},"variables":[],"answer":null}\\n\')\n  except OSError: pass'
    const outcome = await run(worker, forge)
    assert.equal(outcome.reason, 'protocol_violation')
    assert.equal(outcome.state_kept, false)
    assert.equal((await run(worker, 'print("alive")')).stdout.text, 'alive\n')
  })
})
