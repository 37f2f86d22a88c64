import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { LEVELS, openExecutor, run, type TestExecutor } from './open-executor.ts'

const MIB = 1024 * 1024

for (const level of LEVELS) {
  describe(`limits at level ${level}`, { concurrency: 1 }, () => {
    let service: TestExecutor
    let worker: EpisodeWorker
    before(async () => {
      const limits = {
        EPISODE_MEMORY_MIB: '256',
        EPISODE_DISK_MIB: '16',
        EPISODE_INODES: '200',
        EPISODE_PROCESSES: '40',
      }
      service = await openExecutor({ SANDBOX_LEVEL: level, STEP_GRACE_S: '0.3', ...limits })
      worker = await service.open({ variables: { context: 'text' } })
    })
    after(() => service.executor.close())

    const alive = async () => assert.equal((await run(worker, 'print("alive")')).stdout.text, 'alive\n')

    test('one allocation past the limit is a MemoryError that agent code can catch', async () => {
      const outcome = await run(worker, 'try:\n  b = bytearray(6 * 1024**3)\nexcept MemoryError: print("caught")')
      assert.equal(outcome.stdout.text, 'caught\n', JSON.stringify(outcome))
      await alive()
    })

    test('memory that grows past the limit ends the worker with memory_limit', async () => {
      const outcome = await run(worker, 'print("before")\nL = []\nwhile True: L.append("x" * 10**7)')
      assert.equal(outcome.reason, 'memory_limit', JSON.stringify(outcome))
      assert.equal(outcome.state_kept, false)
      assert.equal(outcome.stdout.text, 'before\n')
      assert.match(outcome.stderr.text, /memory/i)
      await alive()
    })

    test('memory of child processes counts', async () => {
      const outcome = await run(
        worker,
        'import subprocess, sys\nsubprocess.run([sys.executable, "-S", "-c", "b = bytearray(400 * 1024**2)"]).returncode',
      )
      assert.equal(outcome.reason, 'memory_limit', JSON.stringify(outcome))
      await alive()
    })

    test('a fork bomb meets the process limit and leaves nothing', async () => {
      const code =
        'import os, time\nforked = 0\ntry:\n  for i in range(1000):\n    if os.fork() == 0: time.sleep(60)\n    forked += 1\nexcept BlockingIOError: print("refused", forked < 40)'
      const outcome = await run(worker, code)
      assert.equal(outcome.stdout.text, 'refused True\n', JSON.stringify(outcome))
      assert.equal(outcome.reason, 'ok')
      worker.close()
      worker = await service.open({ variables: { context: 'text' } })
      await alive()
    })

    test('output is drained and counted, head and tail kept', async () => {
      const outcome = await run(worker, 'print("HEAD")\nfor _ in range(50): print("é" * 100_000)\nprint("TAIL")')
      assert.equal(outcome.reason, 'ok')
      assert.equal(outcome.stdout.total_chars, 5 + 50 * 100_001 + 5)
      assert.equal(outcome.stdout.total_bytes, 5 + 50 * 200_001 + 5)
      assert.match(outcome.stdout.text, /^HEAD\né+\n\.\.\. \(truncated, total 5000060 chars\)\né+\nTAIL\n$/)
      assert.ok(outcome.stdout.text.length < 8192 + 100)
    })

    test('a flood of output costs the service no memory', async () => {
      const before = process.memoryUsage().rss
      const outcome = await run(worker, 'import os\nblock = b"x" * 2**20\nfor _ in range(200): os.write(1, block)')
      assert.equal(outcome.stdout.total_bytes, 200 * MIB, JSON.stringify(outcome).slice(0, 500))
      assert.ok(process.memoryUsage().rss - before < 64 * MIB)
    })

    test('the work folder has a size', async () => {
      const outcome = await run(
        worker,
        'with open("big", "wb") as f:\n  for _ in range(64): f.write(bytes(2**20)); f.flush()',
      )
      if (level === 'namespaces') assert.match(outcome.exception ?? '', /No space left on device/)
      else
        assert.ok(
          /File too large/.test(outcome.exception ?? '') || outcome.reason === 'disk_limit',
          JSON.stringify(outcome),
        )
      await run(worker, 'import os\nif os.path.exists("big"): os.remove("big")')
      await alive()
    })

    test('the number of files has a limit', async () => {
      const outcome = await run(worker, 'import time\nfor i in range(3000): open(f"f{i}", "w").close()\ntime.sleep(5)')
      if (level === 'namespaces') assert.match(outcome.exception ?? '', /No space left on device/)
      else assert.equal(outcome.reason, 'disk_limit', JSON.stringify(outcome))
      await alive()
    })

    test('usage comes from the kernel', async () => {
      const { usage } = await run(worker, 'x = bytearray(50 * 2**20)\nfor _ in range(10**6): pass')
      assert.ok((usage.peak_memory_bytes ?? 0) > 50 * MIB)
      assert.ok((usage.cpu_ms ?? 0) > 5)
      assert.ok(usage.wall_ms > 5)
    })
  })
}

test('a step that prints past a configured limit ends with output_limit', async () => {
  const service = await openExecutor({ STEP_OUTPUT_LIMIT_MIB: '1', STEP_GRACE_S: '0.3' })
  const worker = await service.open()
  const outcome = await run(worker, 'while True: print("x" * 1000)')
  assert.equal(outcome.reason, 'output_limit')
  await service.executor.close()
})

test('CPU time of many threads counts against the step', async () => {
  const service = await openExecutor({ STEP_GRACE_S: '0.3' })
  const worker = await service.open()
  const code =
    'import hashlib, threading\ndef burn():\n  data = bytes(2**24)\n  while True: hashlib.sha256(data)\nfor _ in range(4): threading.Thread(target=burn, daemon=True).start()\nthreading.Event().wait()'
  const outcome = await run(worker, code, 1500)
  assert.equal(outcome.reason, 'timeout')
  await service.executor.close()
})
