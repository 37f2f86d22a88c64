import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { startServer } from '../../src/server.ts'
import { JsonClient } from './json-client.ts'

test('without torch, ml_debug says what is missing and everything else works', async t => {
  const settings = { PORT: '0', WARM_SPARES: '1', LOG_LEVEL: 'silent', FORKYARD_TORCH: 'none' }
  const server = await startServer(readConfig(settings))
  t.after(() => server.close())
  const { get, post } = new JsonClient(() => server.url)
  const { status, body } = await post('/ml_debug/reset', { task_id: 'task1' })
  assert.deepEqual([status, body.code], [503, 'missing_tool'])
  assert.match(String(body.detail), /needs torch.*FORKYARD_TORCH/)
  assert.equal((await post('/ml_debug/grader', { task_id: 'task1', fixed_code: 'print(1)' })).status, 503)
  assert.equal((await get('/ml_debug/tasks')).status, 200)
  assert.equal((await post('/repl/reset')).status, 200)
})
