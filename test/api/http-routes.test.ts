import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build, listen } from './service.ts'

test('/health is exactly healthy, and its details are elsewhere', async t => {
  const { app } = await build(t, { health: () => ({ status: 'healthy', details: { workers: 3 } }) })
  const health = await app.inject('/health')
  assert.deepEqual([health.statusCode, health.body], [200, '{"status":"healthy"}'])
  const details = (await app.inject('/health/details')).json()
  assert.deepEqual(
    [details.workers, details.sessions, details.environment],
    [3, { active: 0, max: 8, http_episodes: 0 }, 'probe'],
  )
})

test('/health is 503 when no episode could start', async t => {
  const { app } = await build(t, { health: () => ({ status: 'unhealthy', details: {} }) })
  const health = await app.inject('/health')
  assert.deepEqual([health.statusCode, health.json()], [503, { status: 'unhealthy' }])
})

for (const [method, url, status, header, value] of [
  ['HEAD', '/health', 405, 'allow', 'GET'],
  ['POST', '/health', 405, 'allow', 'GET'],
  ['OPTIONS', '/probe/schema', 405, 'allow', 'GET'],
  ['PROPFIND', '/reset', 405, 'allow', 'POST'],
  ['GET', '/step', 405, 'allow', 'POST'],
  ['PATCH', '/episodes/some', 405, 'allow', 'DELETE'],
  ['GET', '/health/?x=1', 307, 'location', '/health?x=1'],
  ['POST', '/probe/reset/', 307, 'location', '/probe/reset'],
] as const) {
  test(`${method} ${url} is ${status} with ${header} ${value}`, async t => {
    const { url: base } = await listen(t)
    const reply = await fetch(base + url, { method, redirect: 'manual' })
    assert.deepEqual([reply.status, reply.headers.get(header)], [status, value])
    if (status === 405 && method !== 'HEAD') assert.deepEqual(await reply.json(), { detail: 'Method Not Allowed' })
  })
}

for (const url of [
  '/',
  '/web',
  '/nowhere',
  '/ws',
  '/probe/ws',
  '/health/more/',
  '/health/:id/',
  '//health',
  '/\\\\elsewhere/splits/',
  '/%',
  '/a%00b',
]) {
  test(`GET ${url} is 404 or refused, never a crash`, async t => {
    const { app } = await build(t)
    const reply = await app.inject(url)
    assert.ok([400, 404].includes(reply.statusCode), String(reply.statusCode))
    assert.equal(typeof reply.json().detail, 'string')
  })
}

test('/metadata sends all six keys, nulls included, at the root and at the prefix', async t => {
  const { app } = await build(t)
  const atRoot = await app.inject('/metadata')
  assert.deepEqual(atRoot.json(), {
    name: 'probe_env',
    description: 'Echoes what it is told.',
    readme_content: null,
    version: '0.1.0',
    author: null,
    documentation_url: null,
  })
  assert.equal((await app.inject('/probe/metadata')).body, atRoot.body)
})

test('/schema shows lax fields as what they are, with bounds and defaults, and the base state', async t => {
  const { app } = await build(t)
  const { action, observation, state } = (await app.inject('/schema')).json()
  assert.deepEqual(action.properties.count, { type: 'integer', minimum: 0, maximum: 10, default: 1 })
  assert.deepEqual(action.properties.loud, { type: 'boolean', default: false })
  assert.equal(action.additionalProperties, false)
  assert.deepEqual(Object.keys(observation.properties).sort(), ['done', 'metadata', 'reward', 'said'])
  assert.deepEqual(Object.keys(state.properties), ['episode_id', 'step_count'])
  assert.notEqual(state.additionalProperties, false)
})

test('production mode leaves out /reset, /step and /state, over HTTP and in OpenAPI', async t => {
  const { app } = await build(t, { mode: 'production' })
  for (const [method, url] of [
    ['POST', '/reset'],
    ['POST', '/step'],
    ['GET', '/state'],
  ] as const) {
    assert.equal((await app.inject({ method, url })).statusCode, 404)
  }
  const paths = Object.keys((await app.inject('/openapi.json')).json().paths)
  assert.deepEqual(paths.sort(), ['/health', '/health/details', '/mcp', '/metadata', '/schema'])
})
