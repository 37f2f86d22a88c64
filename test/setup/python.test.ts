import assert from 'node:assert/strict'
import test from 'node:test'
import { findPython, type Interpreter } from '../../src/setup/python.ts'

/** An interpreter that nobody has to install. */
function interpreter(release: [number, number], options: Partial<Interpreter> = {}): Interpreter {
  const version = `${release.join('.')}.1`
  return { executable: `/opt/python${version}`, version, release, can_make_venv: true, bundled_pip: '25.0', ...options }
}

const probeOf = (hosts: Record<string, Interpreter>) => async (name: string) => hosts[name]

test('findPython() takes the newest release on the PATH', async () => {
  const probe = probeOf({
    python3: interpreter([3, 10]),
    'python3.12': interpreter([3, 12]),
    'python3.11': interpreter([3, 11]),
  })
  assert.deepEqual((await findPython(undefined, { probe })).release, [3, 12])
})

test('findPython() passes over a release that can not make environments', async () => {
  const bare = interpreter([3, 12], { can_make_venv: false })
  const probe = probeOf({ 'python3.12': bare, python3: interpreter([3, 10]) })
  assert.deepEqual((await findPython(undefined, { probe })).release, [3, 10])
})

test('findPython() accepts a release without venv where none is made', async () => {
  const probe = probeOf({ '/opt/python': interpreter([3, 12], { can_make_venv: false }) })
  assert.deepEqual((await findPython('/opt/python', { forVenv: false, probe })).release, [3, 12])
})

test('findPython() names the package to install when venv is missing', async () => {
  const probe = probeOf({ 'python3.11': interpreter([3, 11], { can_make_venv: false }) })
  await assert.rejects(findPython(undefined, { probe }), {
    code: 'missing_tool',
    message: /apt-get install python3\.11-venv/,
  })
})

test('findPython() says which release is needed when all are too old', async () => {
  const probe = probeOf({ python3: interpreter([3, 8]) })
  await assert.rejects(findPython(undefined, { probe }), {
    code: 'missing_tool',
    message: /3\.10 or newer and found 3\.8\.1/,
  })
})

test('findPython() says what to install when there is none', async () => {
  await assert.rejects(findPython(undefined, { probe: probeOf({}) }), {
    code: 'missing_tool',
    message: /found none: install it/,
  })
})

test('findPython() blames FORKYARD_PYTHON for a command that is no Python', async () => {
  await assert.rejects(findPython('/bin/true'), { code: 'missing_tool', message: /FORKYARD_PYTHON is \/bin\/true/ })
  await assert.rejects(findPython('/no/such/file'), {
    code: 'missing_tool',
    message: /FORKYARD_PYTHON is \/no\/such\/file/,
  })
})

test('findPython() finds the real path of an interpreter of this host', async () => {
  const { executable, release, can_make_venv } = await findPython()
  assert.match(executable, /^\//)
  assert.deepEqual([release[0], release[1] >= 10, can_make_venv], [3, true, true])
})
