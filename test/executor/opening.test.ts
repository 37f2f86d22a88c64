import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { LEVELS, openExecutor, run, type TestExecutor } from './open-executor.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

for (const level of LEVELS) {
  describe(`what a worker at level ${level} is opened with`, { concurrency: 1 }, () => {
    let service: TestExecutor
    let worker: EpisodeWorker
    before(async () => {
      service = await openExecutor({ SANDBOX_LEVEL: level, STEP_GRACE_S: '0.2' })
      const files = { 'data.bin': base64('\u0000rows'), 'package/inner.py': base64('found = "yes"\n') }
      worker = await service.open({ endings: false, files })
    })
    after(() => service.executor.close())

    test('files lie in the working folder, those in folders too', async () => {
      const code = 'import package.inner\nprint(open("data.bin", "rb").read(), package.inner.found)'
      assert.equal((await run(worker, code)).stdout.text, "b'\\x00rows' yes\n")
    })

    test('without endings there is no FINAL and `answer` is a name like others', async () => {
      const outcome = await run(worker, 'answer = 5\n"FINAL" in globals()')
      assert.equal(outcome.stdout.text, 'False\n')
      assert.equal(outcome.stderr.text, '')
      assert.equal(outcome.answer, null)
      assert.equal((await run(worker, 'answer')).stdout.text, '5\n')
    })

    test('a process that takes the place of a lost one has the files again', async () => {
      const lost = await run(worker, 'import os\nos.remove("data.bin")\nos._exit(3)')
      assert.equal(lost.state_kept, false)
      assert.equal((await run(worker, 'print(len(open("data.bin", "rb").read()))')).stdout.text, '5\n')
    })

    test('a fresh cell sees no variable of the episode and leaves none', async () => {
      await run(worker, 'kept = 1')
      const fresh = await worker.run({ code: 'print("kept" in globals())\nkept = 2', limit_ms: 10_000, fresh: true })
      assert.equal(fresh.stdout.text, 'False\n')
      assert.deepEqual(fresh.locals, { kept: '2' })
      const after = await run(worker, 'import __main__\nprint(kept, __main__.kept)')
      assert.equal(after.stdout.text, '1 1\n')
    })

    test('a fresh cell that fails or is interrupted leaves the episode its variables', async () => {
      await run(worker, 'kept = 3')
      for (const [code, reason] of [
        ['kept = 4\n1 / 0', 'exception'],
        ['kept = 4\nwhile True: pass', 'timeout'],
      ] as const) {
        const fresh = await worker.run({ code, limit_ms: 200, fresh: true })
        assert.deepEqual([fresh.reason, fresh.state_kept], [reason, true])
        assert.ok(fresh.variables.includes('kept'))
        assert.equal((await run(worker, 'print(kept)')).stdout.text, '3\n')
      }
    })

    test('an instrument that does not exist is an exception of the cell', async () => {
      const outcome = await worker.run({
        code: 'print("ran")',
        limit_ms: 10_000,
        instrument: { name: 'no_such', arguments: {} },
      })
      assert.equal(outcome.stdout.text, 'ran\n')
      assert.match(outcome.exception ?? '', /^LookupError: there is no instrument 'no_such'; there are: /)
      assert.deepEqual(outcome.report, {})
    })
  })
}
