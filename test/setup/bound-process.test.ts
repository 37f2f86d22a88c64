import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { execa } from 'execa'
import { runBound, tryBound } from '../../src/setup/bound-process.ts'
import { findPython } from '../../src/setup/python.ts'

const { executable } = await findPython()

test('tryBound() runs a module with its arguments and hands over its lines', async () => {
  const lines: string[] = []
  const result = await tryBound(executable, 'calendar', ['2024', '2'], { onLine: line => lines.push(line.trimEnd()) })
  assert.equal(result.ok, true)
  assert.deepEqual(
    result.lastLines.map(line => line.trimEnd()),
    lines,
  )
  assert.equal(lines[0]?.trim(), 'February 2024')
})

test('runBound() rejects with the last words of a module that fails', async () => {
  await assert.rejects(runBound(executable, 'json.tool', ['/no/such/file']), {
    code: 'missing_tool',
    message: /no\/such\/file/,
  })
})

test('tryBound() ends a module that takes longer than its limit', async () => {
  const { ok } = await tryBound(executable, 'http.server', ['0', '--bind', '127.0.0.1'], { limitMs: 300 })
  assert.equal(ok, false)
})

const onLinux = process.platform === 'linux' ? false : 'only Linux tells a child that its parent died'

test('a bound module ends when its parent is killed', { skip: onLinux }, async () => {
  const parent = execa(process.execPath, [join(import.meta.dirname, 'serve-bound.ts'), executable], {
    reject: false,
    buffer: false,
  })
  const [port] = await once(parent.stdout.setEncoding('utf8'), 'data')
  const socket = connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  parent.kill('SIGKILL')
  // The server holds the other end for as long as it lives.
  socket.resume()
  await Promise.race([once(socket, 'close'), once(socket, 'error')])
  assert.ok(socket.destroyed)
  await parent
})
