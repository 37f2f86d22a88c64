import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { execa } from 'execa'
import { dir } from 'tmp-promise'
import { withLock } from '../../src/setup/lock.ts'
import { isRunning, startOf } from '../../src/setup/process-identity.ts'

const HOLD = join(import.meta.dirname, 'hold-lock.ts')

async function lockIn(t: TestContext): Promise<string> {
  const folder = await dir({ unsafeCleanup: true })
  t.after(() => folder.cleanup())
  return join(folder.path, 'x.lock')
}

const failIfAsked = (pid: number) => assert.fail(`waits for ${pid}`)

test('withLock() runs bodies of one lock one after the other', async t => {
  const lock = await lockIn(t)
  const events: string[] = []
  const enter = (name: string) =>
    withLock(
      lock,
      () => undefined,
      async () => {
        events.push(`${name} in`)
        await new Promise(setImmediate)
        events.push(`${name} out`)
      },
    )
  await Promise.all(['a', 'b', 'c'].map(enter))
  const pairs = [0, 2, 4].map(at => events.slice(at, at + 2).map(event => event.split(' ')[0]))
  assert.ok(
    pairs.every(([first, second]) => first === second),
    events.join(', '),
  )
  assert.equal(events.length, 6)
})

test('withLock() is free again after a body that throws, and leaves no file', async t => {
  const lock = await lockIn(t)
  await assert.rejects(
    withLock(lock, failIfAsked, () => Promise.reject(new Error('body'))),
    /body/,
  )
  assert.equal(await withLock(lock, failIfAsked, async () => 'again'), 'again')
  assert.deepEqual(await readdir(join(lock, '..')), [])
})

test('withLock() takes over from a holder that was killed', async t => {
  const lock = await lockIn(t)
  const holder = execa(process.execPath, [HOLD, lock], { reject: false, buffer: false })
  await once(holder.stdout, 'data')
  holder.kill('SIGKILL')
  await holder
  assert.ok((await readFile(lock, 'utf8')).includes(String(holder.pid)))
  assert.equal(await withLock(lock, failIfAsked, async () => 'mine'), 'mine')
  assert.deepEqual(await readdir(join(lock, '..')), [])
})

test('withLock() waits for a holder in another process, and names it', async t => {
  const lock = await lockIn(t)
  const holder = execa(process.execPath, [HOLD, lock], { reject: false, buffer: false })
  await once(holder.stdout, 'data')
  const waited: number[] = []
  const onWait = (pid: number) => {
    waited.push(pid)
    holder.stdin.end()
  }
  assert.equal(await withLock(lock, onWait, async () => 'mine'), 'mine')
  assert.deepEqual(waited, [holder.pid])
  await holder
})

test('withLock() treats a file that is no lock as left over', async t => {
  const lock = await lockIn(t)
  await writeFile(lock, 'scribble')
  assert.equal(await withLock(lock, failIfAsked, async () => 'mine'), 'mine')
})

test('withLock() lets one of many through when the holder is dead', async t => {
  const lock = await lockIn(t)
  await writeFile(lock, JSON.stringify({ token: 'dead', pid: process.pid, start: 'another' }))
  let inside = 0
  const enter = () =>
    withLock(
      lock,
      () => undefined,
      async () => {
        inside += 1
        assert.equal(inside, 1)
        await new Promise(setImmediate)
        inside -= 1
      },
    )
  await Promise.all(Array.from({ length: 20 }, enter))
})

test('isRunning() tells a process from a later one with its id', async () => {
  const start = await startOf(process.pid)
  assert.equal(await isRunning(process.pid, start), true)
  if (start !== null) assert.equal(await isRunning(process.pid, `${start}0`), false)
})
