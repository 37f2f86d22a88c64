import assert from 'node:assert/strict'
import test from 'node:test'
import { execa } from 'execa'
import { inRepository } from '../../src/setup/paths.ts'
import { findPython } from '../../src/setup/python.ts'

const forkyard = (args: string[], env: Record<string, string> = {}) =>
  execa(process.execPath, [inRepository('bin/forkyard.js'), ...args], { reject: false, stdin: 'ignore', env })

test('a setting that does not fit ends a command with one sentence and exit code 2', async () => {
  const { exitCode, stdout, stderr } = await forkyard(['serve'], { PORT: 'abc' })
  assert.deepEqual([exitCode, stdout], [2, ''])
  assert.match(stderr, /^forkyard: invalid configuration: PORT: [^\n]+$/)
})

test('an interpreter that is not there ends setup with one sentence and exit code 1', async () => {
  const { exitCode, stderr } = await forkyard(['setup'], { FORKYARD_PYTHON: '/no/such/python' })
  assert.equal(exitCode, 1)
  assert.match(stderr, /^forkyard: FORKYARD_PYTHON names \/no\/such\/python, [^\n]+$/)
})

test('setup with an interpreter of the host installs nothing and prints its path', async () => {
  const { executable } = await findPython()
  const { exitCode, stdout, stderr } = await forkyard(['setup'], { FORKYARD_PYTHON: executable })
  assert.deepEqual([exitCode, stdout, stderr], [0, executable, ''])
})

test('an unknown command is refused', async () => {
  const { exitCode, stderr } = await forkyard(['serv'])
  assert.equal(exitCode, 1)
  assert.match(stderr, /unknown command 'serv'/)
})

test('doctor prints its facts as JSON', async () => {
  const { exitCode, stdout } = await forkyard(['doctor', '--json'])
  const facts = JSON.parse(stdout)
  assert.equal(facts.node, process.versions.node)
  assert.equal(exitCode, facts.missing.some(({ needed }: { needed: boolean }) => needed) ? 1 : 0)
})

test('doctor prints the same for people', async () => {
  const { stdout } = await forkyard(['doctor'])
  for (const label of ['Node', 'Python', 'torch', 'GPU', 'Isolation'])
    assert.match(stdout, new RegExp(`^${label} +\\S`, 'm'))
})
