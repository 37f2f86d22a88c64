import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { execa } from 'execa'
import { descendants } from '../process-table.ts'
import { LEVELS, openExecutor, run } from './open-executor.ts'
import { startServiceProcess, untilGone } from './service-process.ts'

/** Run folders of this process; their names hold its id. */
const runFolders = () => readdirSync(tmpdir()).filter(name => name.startsWith(`forkyard-${process.pid}-`))

/** Control groups left of the episodes of a zygote; their names end in its id and a number. */
function controlGroupsOf(zygote: number): string[] {
  if (!existsSync('/sys/fs/cgroup')) return []
  const names = readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' })
  return names.filter(name => name.includes(`.${zygote}-`))
}

for (const level of LEVELS) {
  describe(`the life of processes at level ${level}`, { concurrency: 1 }, () => {
    test('close() leaves no process and no folder', async () => {
      const { executor, open } = await openExecutor({ SANDBOX_LEVEL: level, WARM_SPARES: '3' })
      const worker = await open()
      await run(worker, 'import subprocess\nsubprocess.Popen(["sleep", "1000"])\nopen("left", "w").write("x")')
      assert.ok(descendants().length >= 4)
      assert.equal(runFolders().length, 1)
      await executor.close()
      assert.deepEqual(descendants(), [])
      assert.deepEqual(runFolders(), [])
    })

    test('close() of an episode ends daemons that left its session', async () => {
      const { executor, open } = await openExecutor({ SANDBOX_LEVEL: level, WARM_SPARES: '0' })
      const before = descendants().map(({ pid }) => pid)
      const worker = await open()
      const code =
        'import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    while True: time.sleep(1)\n  os._exit(0)\nos.wait()[1]'
      assert.equal((await run(worker, code)).reason, 'ok')
      const episode = descendants().filter(({ pid }) => !before.includes(pid))
      assert.ok(episode.length >= 3, JSON.stringify(episode))
      worker.close()
      await untilGone(episode.map(({ pid }) => pid))
      await executor.close()
    })

    test('a zygote that dies is replaced and costs no live episode', async () => {
      const { executor, open, log } = await openExecutor({ SANDBOX_LEVEL: level, WARM_SPARES: '0' })
      const worker = await open()
      await run(worker, 'x = 41')
      const zygote = descendants().find(({ pid }) => descendants(pid).length > 0)
      assert.ok(zygote !== undefined)
      process.kill(zygote.pid, 'SIGKILL')
      await untilGone([zygote.pid])
      assert.equal((await run(worker, 'print(x + 1)')).stdout.text, '42\n')
      const second = await open()
      assert.equal((await run(second, 'print("new")')).stdout.text, 'new\n', log.join('\n'))
      const killed = await run(
        worker,
        'import time\nwhile True:\n  try: time.sleep(9)\n  except BaseException: pass',
        200,
      )
      assert.equal(killed.reason, 'timeout')
      assert.equal((await run(worker, 'print("again")')).stdout.text, 'again\n')
      await executor.close()
      assert.deepEqual(descendants(), [])
      // The lost zygote can't remove the groups of its episodes; whoever comes next does.
      const next = await openExecutor({ SANDBOX_LEVEL: level, WARM_SPARES: '0' })
      assert.deepEqual(controlGroupsOf(zygote.pid), [])
      await next.executor.close()
    })

    test('a fork that fails costs no live episode, and the next one works', async () => {
      const { executor, open } = await openExecutor({ SANDBOX_LEVEL: level, WARM_SPARES: '0' })
      const worker = await open()
      await run(worker, 'x = 41')
      const zygote = descendants().find(({ pid }) => descendants(pid).length > 0)
      assert.ok(zygote !== undefined)
      const limitFiles = (count: number) => execa('prlimit', [`--pid=${zygote.pid}`, `--nofile=${count}:`])
      await limitFiles(8)
      await assert.rejects(open(), { code: 'worker_start_failed' })
      assert.equal((await run(worker, 'print(x + 1)')).stdout.text, '42\n')
      await limitFiles(1024)
      assert.equal((await run(await open(), 'print("new")')).stdout.text, 'new\n')
      await executor.close()
      assert.deepEqual(descendants(), [])
      assert.deepEqual(controlGroupsOf(zygote.pid), [])
    })

    test('a server that is killed takes every process and folder with it', async () => {
      const service = await startServiceProcess(level)
      const pids = [service.pid, ...descendants(service.pid).map(({ pid }) => pid)]
      assert.ok(pids.length >= 5)
      process.kill(service.pid, 'SIGKILL')
      await untilGone(pids)
      await service.untilFolderGone()
      assert.equal(existsSync(service.folder), false)
    })

    test('a server and its zygote killed at once leave no process, and the next server clears the folder', async () => {
      const service = await startServiceProcess(level)
      const children = descendants(service.pid)
      const zygote = children.find(({ pid }) => descendants(pid).length > 1)
      assert.ok(zygote !== undefined)
      process.kill(zygote.pid, 'SIGSTOP')
      process.kill(service.pid, 'SIGKILL')
      process.kill(zygote.pid, 'SIGKILL')
      await untilGone([service.pid, ...children.map(({ pid }) => pid)])
      const next = await openExecutor({ SANDBOX_LEVEL: level })
      assert.equal(existsSync(service.folder), false)
      await next.executor.close()
    })
  })
}

test('a worker that dies between two steps is replaced before the next', async () => {
  const { executor, open } = await openExecutor({ WARM_SPARES: '0' })
  const before = descendants().map(({ pid }) => pid)
  const worker = await open({ variables: { context: 'kept' } })
  const episode = descendants().flatMap(({ pid }) => (before.includes(pid) ? [] : [pid]))
  await run(worker, 'import os, threading\nthreading.Timer(0.05, lambda: os._exit(3)).start()')
  await untilGone(episode)
  const outcome = await run(worker, 'print(context)')
  assert.equal(outcome.stdout.text, 'kept\n')
  assert.match(outcome.restarted ?? '', /status 3/)
  assert.equal((await run(worker, 'print(context)')).restarted, null)
  await executor.close()
})

test('more opens than the queue takes are refused with queue_full, and the others are served', async () => {
  const { executor, open } = await openExecutor({ WARM_SPARES: '0', WORKER_QUEUE_LIMIT: '3' })
  const opened = await Promise.allSettled(Array.from({ length: 6 }, () => open()))
  const refused = opened.flatMap(result => (result.status === 'rejected' ? [result.reason.code] : []))
  assert.deepEqual(refused, ['queue_full', 'queue_full', 'queue_full'])
  await executor.close()
})

test('a level the host can not give is refused with the reason', async () => {
  const env = {
    PATH: process.env.PATH ?? '',
    SANDBOX_LEVEL: 'landlock',
    SANDBOX_MIN_LEVEL: 'namespaces',
    FORKYARD_TORCH: 'none',
  }
  const script = join(import.meta.dirname, 'service-main.ts')
  const result = await execa(process.execPath, [script], { env, extendEnv: false, reject: false })
  assert.notEqual(result.exitCode, 0)
  assert.match(result.stderr, /at least namespaces/)
})
