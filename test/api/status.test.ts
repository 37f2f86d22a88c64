import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FAILURE_STATUS, toFailure } from '../../src/api/status.ts'
import { CapacityError, FAILURE_CODES, ServiceError } from '../../src/errors.ts'

test('docs/protocol.md prints the row of every failure code', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/protocol.md'), 'utf8')
  for (const code of FAILURE_CODES) {
    const { http, socket, rpc, retry } = FAILURE_STATUS[code]
    const row = `| \`${code}\` | ${http} | \`${socket}\` | ${rpc} | ${retry ? 'yes' : 'no'} |`
    assert.ok(text.includes(row), `no row ${row}`)
  }
})

test('toFailure() keeps the code of a ServiceError and calls anything else internal', () => {
  assert.equal(toFailure(new ServiceError('queue_full', 'x')).code, 'queue_full')
  assert.deepEqual(toFailure(new CapacityError(2, 3)).facts, { active_sessions: 2, max_sessions: 3 })
  for (const thrown of [new TypeError('x'), 'text', null, undefined]) assert.equal(toFailure(thrown).code, 'internal')
})
