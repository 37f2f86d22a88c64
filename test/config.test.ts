import assert from 'node:assert/strict'
import test from 'node:test'
import { mib, readConfig } from '../src/config.ts'

test('readConfig() takes defaults for what is unset or empty', () => {
  const config = readConfig({ PORT: '', HOST: undefined })
  assert.deepEqual([config.HOST, config.PORT, config.FORKYARD_TORCH], ['127.0.0.1', 8000, 'cpu'])
})

test('readConfig() reads numbers, words and flags', () => {
  const config = readConfig({
    PORT: '0',
    STEP_TIMEOUT_S: '0.5',
    FORKYARD_MODE: 'PRODUCTION',
    REPL_RUN_LAST_STEP: 'off',
  })
  assert.deepEqual(
    [config.PORT, config.STEP_TIMEOUT_S, config.FORKYARD_MODE, config.REPL_RUN_LAST_STEP],
    [0, 0.5, 'production', false],
  )
})

test('readConfig() lets overrides win: a missing one says nothing, an empty one unsets', () => {
  const overrides = { PORT: '1', HOST: undefined, FORKYARD_ENV: '' }
  const config = readConfig({ PORT: '2', HOST: '::1', FORKYARD_ENV: 'x' }, overrides)
  assert.deepEqual([config.PORT, config.HOST, config.FORKYARD_ENV], [1, '::1', 'repl'])
})

test('readConfig() reads several addresses', () => {
  const expected = [
    { port: 8000, environment: 'repl' },
    { port: 0, environment: 'ml_debug' },
  ]
  for (const text of ['8000=repl 0=ml_debug', ' 8000=repl,0=ml_debug ', '8000=repl, 0=ml_debug']) {
    assert.deepEqual(readConfig({ FORKYARD_LISTEN: text }).FORKYARD_LISTEN, expected)
  }
})

test('readConfig() names an address that is none', () => {
  for (const text of ['7860', 'ml_debug=7860', '8000=repl 70000=ml_debug', '8000=']) {
    assert.throws(() => readConfig({ FORKYARD_LISTEN: text }), {
      code: 'invalid_config',
      message: /FORKYARD_LISTEN: expected port=environment, such as 7860=ml_debug, got /,
    })
  }
})

test('readConfig() names every bad variable', () => {
  const bad = { PORT: '70000', SANDBOX_LEVEL: 'some', STEP_THREADS: '1.5' }
  assert.throws(() => readConfig(bad), { code: 'invalid_config', message: /PORT.*SANDBOX_LEVEL.*STEP_THREADS/ })
})

test('readConfig() gives a value that nobody can change', () => {
  assert.ok(Object.isFrozen(readConfig({})))
})

test('mib() counts bytes', () => {
  assert.equal(mib(2), 2_097_152)
})
