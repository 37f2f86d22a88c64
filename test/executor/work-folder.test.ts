import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { execa } from 'execa'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { inspectFolder } from '../../src/executor/folder-usage.ts'
import { readTree } from '../../src/executor/tree-usage.ts'
import { openExecutor, run, type TestExecutor } from './open-executor.ts'

const MIB = 1024 * 1024
const NOBODY = '65534'
const LIMITS = { disk_bytes: MIB, inodes: 12_000 }
const going = new AbortController().signal

describe('a work folder on the disk of the host', { concurrency: 1 }, () => {
  let service: TestExecutor
  let worker: EpisodeWorker
  before(async () => {
    const limits = { EPISODE_DISK_MIB: '16', EPISODE_INODES: '1000' }
    service = await openExecutor({ SANDBOX_LEVEL: 'landlock', STEP_GRACE_S: '0.3', ...limits })
    worker = await service.open()
  })
  after(() => service.executor.close())

  const alive = async () => assert.equal((await run(worker, 'print("alive")')).stdout.text, 'alive\n')
  const descend =
    'import os, time\np = os.getcwd()\nwhile len(p) + 201 < 4090:\n  os.mkdir("d" * 200); os.chdir("d" * 200); p += "/" + "d" * 200\n'

  test('a path that is too long to open ends the worker with disk_limit', async () => {
    const outcome = await run(worker, `${descend}open("f" * 200, "w").write("x"); time.sleep(5)`)
    assert.equal(outcome.reason, 'disk_limit', JSON.stringify(outcome))
    assert.match(outcome.exception ?? '', /^DiskLimit: the work folder holds a path that is too long to open$/)
    await alive()
  })

  test('bytes below the longest path are not hidden, not even in a short step', async () => {
    const code = `${descend}for _ in range(4): os.mkdir("d" * 200); os.chdir("d" * 200)
for i in range(3): open(f"big{i}", "wb").write(bytes(8 << 20))`
    const outcome = await run(worker, code)
    assert.equal(outcome.reason, 'disk_limit', JSON.stringify(outcome))
    await alive()
  })

  test('folders nested deeper than any use needs end the worker with disk_limit', async () => {
    const outcome = await run(worker, 'import os\nfor _ in range(100): os.mkdir("d"); os.chdir("d")')
    assert.equal(outcome.reason, 'disk_limit', JSON.stringify(outcome))
    assert.match(outcome.exception ?? '', /nested deeper than 64/)
    await alive()
  })

  test('bytes under a name that is not text count', async () => {
    const code = 'import os\nos.mkdir(b"\\xff")\nfor i in range(3): open(b"\\xff/%d" % i, "wb").write(bytes(8 << 20))'
    const outcome = await run(worker, code)
    assert.equal(outcome.reason, 'disk_limit', JSON.stringify(outcome))
    await alive()
  })

  test('entries that come and go count as nothing', async () => {
    const code = `import os, time
end = time.monotonic() + 1.5
while time.monotonic() < end:
  for i in range(100): os.makedirs(f"r{i}/q")
  for i in range(100): os.removedirs(f"r{i}/q")
  os.makedirs("stay", exist_ok=True)
print("done")`
    const outcome = await run(worker, code)
    assert.equal(outcome.reason, 'ok', JSON.stringify(outcome))
    assert.equal(outcome.stdout.text, 'done\n')
    await alive()
  })
})

describe('inspectFolder()', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'inspected-'))
  })
  const remove = () => rmSync(folder, { recursive: true, force: true })

  test('finds a folder within its limits, and one with more files or bytes past them', async t => {
    t.after(remove)
    mkdirSync(join(folder, 'a/b'), { recursive: true })
    writeFileSync(join(folder, 'a/b/c'), Buffer.alloc(MIB / 2, 1))
    assert.deepEqual(await inspectFolder(folder, LIMITS, going), { verdict: 'within' })
    assert.deepEqual(await inspectFolder(folder, { ...LIMITS, inodes: 3 }, going), { verdict: 'within' })
    const few = await inspectFolder(folder, { ...LIMITS, inodes: 2 }, going)
    assert.deepEqual(few, { verdict: 'past', why: `grew past ${MIB} bytes or 2 files` })
    const small = await inspectFolder(folder, { ...LIMITS, disk_bytes: 1000 }, going)
    assert.equal(small.verdict, 'past')
  })

  test('counts a link as itself', async t => {
    t.after(remove)
    symlinkSync('/', join(folder, 'root'))
    symlinkSync('loop', join(folder, 'loop'))
    assert.deepEqual(await inspectFolder(folder, { ...LIMITS, inodes: 2 }, going), { verdict: 'within' })
  })

  test('finds nothing in a folder that is gone or not a folder', async t => {
    t.after(remove)
    writeFileSync(join(folder, 'file'), '')
    assert.deepEqual(await inspectFolder(join(folder, 'gone'), LIMITS, going), { verdict: 'within' })
    assert.deepEqual(await inspectFolder(join(folder, 'file'), LIMITS, going), { verdict: 'within' })
  })

  test('says that it does not know where the service is at fault', async () => {
    const finding = await inspectFolder('a\0b', LIMITS, going)
    assert.equal(finding.verdict, 'unknown')
  })

  test('lets the event loop turn while it walks, and stops when asked to', async t => {
    t.after(remove)
    for (let i = 0; i < 10_000; i++) writeFileSync(join(folder, String(i)), '')
    let turns = 0
    const count = () => {
      turns += 1
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    assert.deepEqual(await inspectFolder(folder, LIMITS, going), { verdict: 'within' })
    assert.ok(turns > 3, `${turns} turns`)
    clearImmediate(timer)
    const stop = new AbortController()
    const finding = inspectFolder(folder, LIMITS, stop.signal)
    stop.abort()
    assert.deepEqual(await finding, { verdict: 'stopped' })
  })

  test('takes a folder that cannot be read to be past its limits', async t => {
    t.after(() => {
      chmodSync(join(folder, 'closed'), 0o700)
      remove()
    })
    mkdirSync(join(folder, 'closed'), { mode: 0 })
    chmodSync(folder, 0o755)
    const module = pathToFileURL(join(import.meta.dirname, '../../src/executor/folder-usage.ts')).href
    const script = `const { inspectFolder } = await import(${JSON.stringify(module)})
console.log((await inspectFolder(${JSON.stringify(folder)}, ${JSON.stringify(LIMITS)}, new AbortController().signal)).why)`
    const node = [process.execPath, '--input-type=module', '-e', script]
    const user = ['setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups']
    const [command = '', ...args] = process.getuid?.() === 0 ? [...user, ...node] : node
    assert.equal((await execa(command, args, { cwd: '/' })).stdout, 'holds a folder that cannot be read')
  })
})

describe('readTree()', () => {
  test('counts children that a thread forked, and stops at the limit', async t => {
    const sleeper = 'require("node:child_process").spawn("sleep", ["60"])'
    const script = `const { Worker } = require('node:worker_threads')
const threads = [1, 2, 3].map(() => new Worker(${JSON.stringify(`${sleeper}.once("spawn", () => require("node:worker_threads").parentPort.postMessage(0))`)}, { eval: true }))
let left = 3
for (const thread of threads) thread.once('message', () => --left === 0 && console.log('ready'))
process.stdin.on('end', () => process.exit()).resume()`
    const child = execa(process.execPath, ['-e', script], { reject: false, buffer: false })
    t.after(async () => {
      for (const pid of sleepers) process.kill(pid)
      child.kill()
      await child
    })
    const sleepers: number[] = []
    await once(child.stdout, 'data')
    const pid = child.pid ?? 0
    const { stdout } = await execa('pgrep', ['-P', String(pid)])
    sleepers.push(...stdout.split('\n').map(Number))
    assert.equal(sleepers.length, 3)
    const tree = readTree(pid, 0, 10)
    assert.equal(tree.processes, 3)
    assert.ok(tree.memory_bytes > 0)
    assert.equal(tree.unread, null)
    assert.equal(readTree(pid, 0, 1).processes, 2)
  })

  test('counts a process that is gone as nothing', () => {
    assert.deepEqual(readTree(2 ** 22 + 1, 0, 10), { processes: 0, memory_bytes: 0, unread: null })
  })
})
