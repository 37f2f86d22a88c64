import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { execa } from 'execa'
import { dir } from 'tmp-promise'
import { findPython } from '../../src/setup/python.ts'
import { ensureVenv, isBuilt, type VenvRequest } from '../../src/setup/venv.ts'

const SILENT = { stage: () => undefined, detail: () => undefined, close: () => undefined }

async function requestIn(t: TestContext, changes: Partial<VenvRequest> = {}): Promise<VenvRequest> {
  const { path, cleanup } = await dir({ unsafeCleanup: true })
  t.after(() => cleanup())
  const python = () => findPython()
  const install = async () => undefined
  return {
    folder: join(path, 'venv'),
    requirements: ['a==1'],
    variant: 'cpu',
    python,
    install,
    progress: SILENT,
    ...changes,
  }
}

/** Fails a build before it touches anything: shows that a build would begin. */
const refuse = { python: () => Promise.reject(new Error('a build begins')) }

test('ensureVenv() builds once for two that ask at once, and then does nothing until the requirements change', async t => {
  const installed: string[][] = []
  const install = async (_python: string, requirements: string[]) => void installed.push(requirements)
  const request = await requestIn(t, { install })
  const [python] = await Promise.all([ensureVenv(request), ensureVenv(request)])
  assert.deepEqual(installed, [['a==1']])
  const { stdout } = await execa(python, ['-c', 'import sys; print(sys.prefix != sys.base_prefix)'])
  assert.equal(stdout, 'True')
  assert.equal(await isBuilt(request.folder), true)
  assert.deepEqual(await readdir(join(request.folder, '..')), ['venv'])

  assert.equal(await ensureVenv({ ...request, ...refuse }), python)
  await assert.rejects(ensureVenv({ ...request, ...refuse, requirements: ['a==2'] }), /a build begins/)
  await assert.rejects(ensureVenv({ ...request, ...refuse, variant: 'cuda' }), /a build begins/)
})

test('ensureVenv() starts from an empty folder after an interrupted build, and is not done when installing fails', async t => {
  const request = await requestIn(t, { install: () => Promise.reject(new Error('no network')) })
  await mkdir(request.folder)
  await writeFile(join(request.folder, 'forkyard.json'), '{"state":"building"}')
  await writeFile(join(request.folder, 'left-over'), '')
  await assert.rejects(ensureVenv(request), /no network/)
  assert.equal(existsSync(join(request.folder, 'left-over')), false)
  assert.equal(await isBuilt(request.folder), false)
  await assert.rejects(ensureVenv({ ...request, ...refuse }), /a build begins/)
})

test('ensureVenv() leaves a folder alone that it did not make', async t => {
  const request = await requestIn(t)
  await mkdir(request.folder)
  await writeFile(join(request.folder, 'precious'), 'data')
  await assert.rejects(ensureVenv(request), { code: 'invalid_config', message: /was not made by setup/ })
  assert.equal(await readFile(join(request.folder, 'precious'), 'utf8'), 'data')
})
