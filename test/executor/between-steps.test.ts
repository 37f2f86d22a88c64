import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openExecutor, run } from './open-executor.ts'
import { until } from './service-process.ts'

test('a process that floods between two steps waits, and is heard in the next', async () => {
  const { executor, open } = await openExecutor()
  const worker = await open()
  await run(worker, 'import subprocess\np = subprocess.Popen(["yes"])')
  const cpuBefore = process.cpuUsage().user
  await until(() => process.cpuUsage().user > cpuBefore, 'the clock stands')
  const outcome = await run(worker, 'import time; time.sleep(0.2); p.kill()')
  assert.match(outcome.stdout.text, /^y\ny\n/)
  assert.equal(outcome.reason, 'ok')
  await executor.close()
})

test('a work folder that grows between two steps ends the worker, and the next step says so', async () => {
  const { executor, open } = await openExecutor({ SANDBOX_LEVEL: 'landlock', EPISODE_DISK_MIB: '8' })
  const worker = await open()
  await run(worker, 'import subprocess\nsubprocess.Popen("sleep 0.3; head -c 64M /dev/zero > big", shell=True)')
  await until(() => executor.describe().workers.busy === 0, 'the worker is still there')
  const outcome = await run(worker, 'print("alive")')
  assert.equal(outcome.stdout.text, 'alive\n')
  assert.match(outcome.restarted ?? '', /DiskLimit/)
  await executor.close()
})
