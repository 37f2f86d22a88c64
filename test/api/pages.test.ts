import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TaskCatalogue } from '../../src/environment/environment.ts'
import { createProbe } from './probe-environment.ts'
import { build, listen } from './service.ts'
import { WireClient } from './wire-client.ts'

for (const prefix of ['', '/probe']) {
  test(`${prefix}/openapi.json is OpenAPI 3.1 of this environment, with paths relative to ${prefix || '/'}`, async t => {
    const { app } = await build(t)
    const document = (await app.inject(`${prefix}/openapi.json`)).json()
    assert.deepEqual([document.openapi, document.info.version], ['3.1.0', '1.0.0'])
    assert.deepEqual(document.servers, [{ url: prefix || '/' }])
    for (const path of ['/reset', '/step', '/state', '/metadata', '/health', '/schema', '/mcp']) {
      assert.ok(document.paths[path], path)
    }
    assert.equal(document.components.schemas.Action.properties.say.type, 'string')
  })

  test(`${prefix}/docs and ${prefix}/redoc load nothing from elsewhere, and what they load is there`, async t => {
    const { app } = await build(t)
    for (const page of ['docs', 'redoc']) {
      const reply = await app.inject(`${prefix}/${page}`)
      assert.deepEqual([reply.statusCode, reply.headers['content-type']], [200, 'text/html; charset=utf-8'])
      assert.doesNotMatch(reply.body, /(?:src|href|url\()\s*[=:]?\s*["']?(?:https?:)?\/\//)
      for (const [, path] of reply.body.matchAll(/(?:src|href)="([^"#]+)"|url: '([^']+)'/g)) {
        if (path === undefined) continue
        assert.equal((await app.inject(new URL(path, `http://x${prefix}/${page}`).pathname)).statusCode, 200, path)
      }
    }
  })
}

test('every $ref in /openapi.json points at something', async t => {
  const { app } = await build(t)
  const text = (await app.inject('/openapi.json')).body
  const { schemas } = JSON.parse(text).components
  const names = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(match => match[1])
  assert.ok(names.length > 10)
  for (const name of names) assert.ok(name !== undefined && name in schemas, name)
})

test('the web interface is not there unless it is asked for', async t => {
  const { app } = await build(t)
  for (const url of ['/', '/web', '/web/', '/web/state', '/web/metadata']) {
    assert.equal((await app.inject(url)).statusCode, 404)
  }
})

const web = { webInterface: { readmePath: undefined } }

for (const prefix of ['', '/probe']) {
  test(`${prefix}/web redirects to a page that loads nothing from elsewhere`, async t => {
    const { app } = await build(t, web)
    for (const url of [prefix || '/', `${prefix}/web`]) {
      const reply = await app.inject(url)
      assert.deepEqual([reply.statusCode, reply.headers.location], [307, `${prefix}/web/`])
    }
    const page = await app.inject(`${prefix}/web/`)
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    assert.doesNotMatch(page.body, /(?:src|href)="(?:https?:)?\/\//)
  })
}

test('/web/state is 409 before the first reset, then the whole state', async t => {
  const { app } = await build(t, web)
  const before = await app.inject('/web/state')
  assert.deepEqual([before.statusCode, typeof before.json().detail], [409, 'string'])
  assert.equal((await app.inject({ method: 'POST', url: '/web/step', payload: { action: {} } })).statusCode, 409)
  await app.inject({ method: 'POST', url: '/web/reset', payload: { context: 'c' } })
  await app.inject({ method: 'POST', url: '/web/step', payload: { action: { say: 'x' } } })
  const { step_count, context } = (await app.inject('/web/state')).json()
  assert.deepEqual([step_count, context], [1, 'c'])
  assert.equal((await app.inject({ method: 'POST', url: '/web/step', payload: { message: 'x' } })).statusCode, 422)
})

test('/ws/ui shows every visitor the shared episode after each change, at most 1000 actions of it', async t => {
  const { app, url, sessions } = await listen(t, web)
  const viewer = await WireClient.open(t, `${url}/ws/ui`)
  type Update = { type: string; episode_state: Record<string, unknown> & { action_logs: Record<string, unknown>[] } }
  const next = async () => (await viewer.next()) as unknown as Update
  const first = await next()
  assert.deepEqual([first.type, first.episode_state.episode_id], ['state_update', null])
  await app.inject({ method: 'POST', url: '/web/reset', payload: { episode_id: 'shared' } })
  assert.deepEqual([(await next()).episode_state.episode_id, sessions.active], ['shared', 1])
  for (let index = 0; index < 1001; index += 1) {
    await app.inject({ method: 'POST', url: '/web/step', payload: { action: { say: String(index), metadata: {} } } })
  }
  let last = await next()
  while (last.episode_state.step_count !== 1001) last = await next()
  const logs = last.episode_state.action_logs
  assert.equal(logs.length, 1000)
  assert.deepEqual(Object.keys(logs[0] ?? {}), ['timestamp', 'action', 'observation', 'reward', 'done', 'step_count'])
  assert.deepEqual([logs[0]?.action, logs[0]?.step_count], [{ say: '1' }, 2])
})

test('/web/metadata carries the README that the configuration names', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'readme-'))
  t.after(() => rm(folder, { recursive: true }))
  const readmePath = join(folder, 'README.md')
  const { app } = await build(t, { webInterface: { readmePath } })
  assert.equal((await app.inject('/web/metadata')).json().readme_content, null)
  await writeFile(readmePath, '# Probe')
  assert.equal((await app.inject('/web/metadata')).json().readme_content, '# Probe')
})

test('the Task API lists environments, and answers 501 where there are no tasks and 404 where there is no environment', async t => {
  const { app } = await build(t)
  assert.deepEqual((await app.inject('/list_environments')).json(), ['probe'])
  for (const name of ['probe', 'PROBE', 'probe_env'])
    assert.equal((await app.inject(`/${name}/splits`)).statusCode, 501)
  const body = { split: 'train' }
  for (const verb of ['tasks', 'num_tasks', 'task', 'task_range']) {
    assert.equal((await app.inject({ method: 'POST', url: `/probe/${verb}`, payload: body })).statusCode, 501)
    assert.equal((await app.inject({ method: 'POST', url: `/nothing/${verb}`, payload: body })).statusCode, 404)
  }
})

test('the Task API serves the tasks of an environment that has some', async t => {
  const catalogue: TaskCatalogue = {
    splits: [{ name: 'train', type: 'train' }],
    tasks: split => (split === 'train' ? ['a', 'b', 'c'] : undefined),
  }
  const environment = { ...createProbe().environment, tasks: catalogue }
  const { app } = await build(t, { environments: [environment] })
  const ask = async (verb: string, payload: object) => {
    const reply = await app.inject({ method: 'POST', url: `/Probe/${verb}`, payload })
    return [reply.statusCode, reply.json()]
  }
  assert.deepEqual((await app.inject('/probe/splits')).json(), [{ name: 'train', type: 'train' }])
  assert.deepEqual(await ask('tasks', { split: 'train' }), [200, { tasks: ['a', 'b', 'c'], env_name: 'probe' }])
  assert.deepEqual(await ask('num_tasks', { split: 'train' }), [200, { num_tasks: 3 }])
  assert.deepEqual(await ask('task', { split: 'train', index: '1' }), [200, { task: 'b' }])
  assert.deepEqual(await ask('task_range', { split: 'train', start: 1, stop: 3 }), [200, { tasks: ['b', 'c'] }])
  for (const [verb, payload, status] of [
    ['task', { split: 'train', index: 3 }, 400],
    ['task', { split: 'train', index: -1 }, 400],
    ['task_range', { split: 'train', start: 2, stop: 9 }, 400],
    ['tasks', { split: 'none' }, 400],
    ['tasks', {}, 422],
    ['task', { split: 'train', index: 1.5 }, 422],
  ] as const) {
    assert.equal((await ask(verb, payload))[0], status)
  }
})
