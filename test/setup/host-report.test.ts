import assert from 'node:assert/strict'
import test from 'node:test'
import { readConfig } from '../../src/config.ts'
import { diagnose } from '../../src/setup/diagnosis.ts'
import { type HostReport, levelInForce } from '../../src/setup/host-report.ts'

const hostWith = (...levels: HostReport['levels']): HostReport => ({ levels, layers: {}, notes: [], cgroup: 'v2' })

const bare = hostWith('namespaces', 'landlock', 'none')
const docker = hostWith('landlock', 'none')
const old = hostWith('none')

test('levelInForce() takes the best level the host gives', () => {
  assert.equal(levelInForce(bare, 'best', 'landlock'), 'namespaces')
  assert.equal(levelInForce(docker, 'best', 'landlock'), 'landlock')
})

test('levelInForce() is null below the least level that is allowed', () => {
  assert.equal(levelInForce(docker, 'best', 'namespaces'), null)
  assert.equal(levelInForce(old, 'best', 'landlock'), null)
  assert.equal(levelInForce(bare, 'none', 'landlock'), null)
  assert.equal(levelInForce(old, 'best', 'none'), 'none')
})

test('levelInForce() takes the level that is named, or none at all', () => {
  assert.equal(levelInForce(bare, 'landlock', 'landlock'), 'landlock')
  assert.equal(levelInForce(docker, 'namespaces', 'landlock'), null)
})

test('diagnose() tells the isolation of this host by trying it', async () => {
  const { isolation, missing } = await diagnose(readConfig())
  assert.ok(isolation !== null, JSON.stringify(missing))
  assert.equal(isolation.levels.at(-1), 'none')
  assert.ok('landlock' in isolation.layers && 'seccomp' in isolation.layers)
})

test('diagnose() names what is missing before setup, and still tries the sandbox', async () => {
  const { python, isolation, missing } = await diagnose({
    ...readConfig(),
    FORKYARD_PYTHON: undefined,
    FORKYARD_VENV: '.venv-nobody-made',
  })
  assert.equal(python, null)
  assert.notEqual(isolation, null)
  assert.ok(missing.some(({ needed, sentence }) => needed && sentence.includes('npm run setup')))
})

test('diagnose() says that the settings ask for more than the host gives', async () => {
  const config = readConfig()
  const { level, missing } = await diagnose({ ...config, SANDBOX_LEVEL: 'none', SANDBOX_MIN_LEVEL: 'namespaces' })
  assert.equal(level, null)
  assert.ok(missing.some(({ needed, sentence }) => needed && sentence.includes('SANDBOX_MIN_LEVEL')))
})
