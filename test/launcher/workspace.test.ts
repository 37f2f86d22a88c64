import assert from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { execa } from 'execa'
import { makeRunFolder, makeWorkFolder } from '../../src/launcher/workspace.ts'

const NOBODY = '65534'
const MODULE = pathToFileURL(join(import.meta.dirname, '../../src/launcher/workspace.ts')).href
const isRoot = process.getuid?.() === 0
/** A pid above what any kernel gives out. */
const NO_PID = 2 ** 22 + 1

const home = mkdtempSync(join(tmpdir(), 'workspace-test-'))
chmodSync(home, 0o777)
let folder = ''
let log: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(home, 'tmp-'))
  chmodSync(folder, 0o777)
  process.env.TMPDIR = folder
  log = []
})
after(async () => {
  await execa('chmod', ['-R', 'u+rwX', home])
  await execa('rm', ['-rf', home])
})

/** Run statements that know `makeRunFolder`, `makeWorkFolder`, `fs` and `run`, as a user without privileges. */
async function asPlainUser(body: string): Promise<string> {
  const script = `const { makeRunFolder, makeWorkFolder } = await import(${JSON.stringify(MODULE)})
const fs = await import('node:fs')
const log = []
const run = await makeRunFolder(line => log.push(line))
${body}`
  const node = [process.execPath, '--input-type=module', '-e', script]
  const [command = '', ...args] = isRoot
    ? ['setpriv', '--reuid', NOBODY, '--regid', NOBODY, '--clear-groups', ...node]
    : node
  const env = { PATH: '/usr/bin:/bin', TMPDIR: folder }
  return (await execa(command, args, { env, extendEnv: false, cwd: folder })).stdout
}

async function ownerOf(run: { path: string; remove(): Promise<void> }): Promise<string[]> {
  const text = readFileSync(join(run.path, 'owner'), 'utf8')
  await run.remove()
  return text.trim().split(' ')
}

function plant(name: string, owner: string): string {
  const path = join(folder, `forkyard-${name}`)
  mkdirSync(path, { mode: 0o700 })
  writeFileSync(join(path, 'owner'), owner)
  return path
}

const DEEP = `process.chdir(work.path)
for (let level = 0; level < 3000; level++) { fs.mkdirSync('deep'); process.chdir('deep') }
fs.writeFileSync('last', 'x')
process.chdir(run.path)
`

test('WorkFolder.remove() removes a tree deeper than any path can name', async () => {
  const printed = await asPlainUser(`const work = await makeWorkFolder(run.path, line => log.push(line))
${DEEP}
await work.remove()
console.log(fs.existsSync(work.path), log.length)
await run.remove()
console.log(fs.existsSync(run.path), log.length)`)
  assert.equal(printed, 'false 0\nfalse 0')
})

test('WorkFolder.remove() removes folders whose permissions were taken away', async () => {
  const printed = await asPlainUser(`const work = await makeWorkFolder(run.path, line => log.push(line))
fs.mkdirSync(work.path + '/a/b', { recursive: true })
fs.writeFileSync(work.path + '/a/b/c', 'x')
for (const path of ['/a/b', '/a', '']) fs.chmodSync(work.path + path, 0)
await work.remove()
console.log(fs.existsSync(work.path), log.length)
await run.remove()`)
  assert.equal(printed, 'false 0')
})

test('WorkFolder.remove() removes many files, odd names and links, and nothing that a link points to', async () => {
  const kept = join(folder, 'kept')
  writeFileSync(kept, 'x')
  const run = await makeRunFolder(line => log.push(line))
  const work = await makeWorkFolder(run.path, line => log.push(line))
  const script = `import os
for i in range(10000): open(f"f{i}", "w").close()
os.mkdir(b"\\xff"); open(b"\\xff/-rf", "w").close(); os.symlink(${JSON.stringify(folder)}, "link")`
  await execa('python3', ['-c', script], { cwd: work.path })
  await work.remove()
  assert.equal(existsSync(work.path), false)
  assert.equal(existsSync(kept), true)
  await run.remove()
  assert.equal(existsSync(run.path), false)
  assert.deepEqual(log, [])
})

test('WorkFolder.remove() resolves twice, and for a folder that is gone', async () => {
  const run = await makeRunFolder(line => log.push(line))
  const work = await makeWorkFolder(run.path, line => log.push(line))
  rmSync(run.path, { recursive: true })
  await Promise.all([work.remove(), work.remove()])
  assert.deepEqual(log, [])
})

test('WorkFolder.remove() tells what it could not remove', async () => {
  const printed = await asPlainUser(`const work = await makeWorkFolder(run.path, line => log.push(line))
fs.writeFileSync(work.path + '/f', 'x')
fs.chmodSync(run.path, 0o500)
await work.remove()
console.log(log.length, log[0].includes(work.path) && log[0].includes('could not be removed'))
fs.chmodSync(run.path, 0o700)
await run.remove()`)
  assert.equal(printed, '1 true')
})

test('makeRunFolder() removes the folder of a server that is gone, whatever it holds', async () => {
  const first = await ownerOf(await makeRunFolder(line => log.push(line)))
  assert.equal(first.length, 3)
  assert.match(first.join(' '), /^\d+ \d+ \d+$/)
  const [pid = '', ticks = '', namespace = ''] = first
  const gone = plant('gone', `${NO_PID} ${ticks} ${namespace}\n`)
  const reused = plant('reused', `${pid} 1 ${namespace}\n`)
  mkdirSync(join(gone, 'closed'), { mode: 0 })
  const run = await makeRunFolder(line => log.push(line))
  assert.deepEqual([gone, reused].map(existsSync), [false, false])
  await run.remove()
  assert.deepEqual(log, [])
})

test('makeRunFolder() leaves the folders of living servers, other namespaces and unknown formats', async () => {
  const [pid = '', ticks = '', namespace = ''] = await ownerOf(await makeRunFolder(line => log.push(line)))
  const paths = [
    plant('living', `${pid} ${ticks} ${namespace}\n`),
    plant('elsewhere', `${NO_PID} ${ticks} ${namespace}1\n`),
    plant('older', `${NO_PID} ${ticks}\n`),
    plant('garbage', '../.. x y z\n'),
    plant('empty', ''),
  ]
  const run = await makeRunFolder(line => log.push(line))
  assert.deepEqual(
    paths.map(existsSync),
    paths.map(() => true),
  )
  await run.remove()
  assert.deepEqual(log, [])
})

test('makeRunFolder() leaves what it cannot read, says so, and starts', async () => {
  const path = join(folder, 'forkyard-odd')
  mkdirSync(join(path, 'owner'), { recursive: true })
  const run = await makeRunFolder(line => log.push(line))
  assert.equal(log.length, 1)
  assert.match(log.join(), /forkyard-odd is left alone: EISDIR/)
  await run.remove()
})

const otherUser = { skip: isRoot ? false : 'not root: no folder of another user can be made' }
test("makeRunFolder() leaves other users' folders, readable or not", otherUser, async () => {
  const [, ticks = '', namespace = ''] = await ownerOf(await makeRunFolder(line => log.push(line)))
  const hidden = plant('hidden', `${NO_PID} ${ticks} ${namespace}\n`)
  assert.equal(await asPlainUser('console.log(log.length)\nawait run.remove()'), '0')
  const foreign = plant('foreign', `${NO_PID} ${ticks} ${namespace}\n`)
  chownSync(foreign, Number(NOBODY), Number(NOBODY))
  const run = await makeRunFolder(line => log.push(line))
  assert.equal(existsSync(foreign), true)
  // This one is root's, as this process is: no longer another user's.
  assert.equal(existsSync(hidden), false)
  await run.remove()
})
