import assert from 'node:assert/strict'
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { execa } from 'execa'
import { descendants } from '../process-table.ts'
import { LEVELS } from './open-executor.ts'

/** Debian's and most other systems' interpreter: one that every user may run. */
const PYTHON = '/usr/bin/python3'
const NOBODY = '65534'

/** Why this host can't run the test, or false. As a plain user every other test is this test. */
function obstacle(): string | false {
  if (process.getuid?.() !== 0) return 'not root: the other tests of this folder run as a plain user already'
  if (!existsSync(PYTHON)) return `${PYTHON} is missing`
  accessSync(PYTHON, constants.X_OK)
  return false
}

for (const level of LEVELS) {
  test(`a plain user gets level ${level}, with the same outcomes`, { skip: obstacle() }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'plain-user-'))
    chmodSync(folder, 0o777)
    const script = join(import.meta.dirname, 'unprivileged-main.ts')
    const args = ['--reuid', NOBODY, '--regid', NOBODY, '--clear-groups', process.execPath, script]
    const env = {
      PATH: '/usr/bin:/bin',
      TMPDIR: folder,
      FORKYARD_PYTHON: PYTHON,
      SANDBOX_LEVEL: level,
      STEP_GRACE_S: '0.3',
      EPISODE_MEMORY_MIB: '256',
    }
    const result = await execa('setpriv', args, { env, extendEnv: false, reject: false })
    rmSync(folder, { recursive: true, force: true })
    assert.equal(result.exitCode, 0, result.stderr)
    const report = JSON.parse(result.stdout)
    assert.equal(report.level, level)
    const [first, killed, write, socket, file, allocation, growth] = report.outcomes
    assert.match(first.stdout, level === 'namespaces' ? /^4 1000 2\n$/ : /^4 65534 \d+\n$/)
    assert.deepEqual(killed, { reason: 'timeout', state_kept: false, stdout: 'before\n' })
    assert.match(write.stdout, /PermissionError|OSError/)
    assert.equal(socket.stdout, 'no socket\n')
    assert.equal(file.stdout, 'ok\n')
    assert.equal(allocation.stdout, 'caught\n')
    assert.ok(['memory_limit', 'exception'].includes(growth.reason), growth.reason)
    assert.deepEqual(
      descendants().filter(({ name }) => name.startsWith('python')),
      [],
    )
  })
}
