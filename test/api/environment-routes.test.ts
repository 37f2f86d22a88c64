import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import type { Environment, EnvironmentRoute, StepResult } from '../../src/environment/environment.ts'
import { laxInt, text } from '../../src/environment/fields.ts'
import { ServiceError } from '../../src/errors.ts'
import { createProbe } from './probe-environment.ts'
import { build, listen, type ServiceOptions } from './service.ts'
import { WireClient } from './wire-client.ts'

const ROUTES: EnvironmentRoute[] = [
  {
    method: 'GET',
    path: '/double',
    summary: 'Twice a number',
    input: z.object({ number: laxInt({ max: 100 }).describe('What to double.') }),
    reply: z.object({ doubled: z.int() }),
    handle: async ({ number }) => ({ doubled: Number(number) * 2 }),
  },
  {
    method: 'POST',
    path: '/double',
    summary: 'Twice a number from a body',
    input: z.strictObject({ number: laxInt().default(21) }),
    reply: z.object({ doubled: z.int() }),
    handle: async ({ number }) => ({ doubled: Number(number) * 2 }),
  },
  {
    method: 'GET',
    path: '/reset',
    summary: 'Alive',
    input: z.object({}),
    reply: z.object({ status: z.string() }),
    handle: async () => ({ status: 'ok' }),
  },
  {
    method: 'POST',
    path: '/busy',
    summary: 'Never has time',
    input: z.looseObject({}),
    reply: z.object({}),
    handle: async () => {
      throw new ServiceError('worker_start_failed', 'try again')
    },
  },
]

/** The probe with routes, and actions that can name their episode. */
function routed(): Environment {
  const { environment } = createProbe()
  return {
    ...environment,
    actionSchema: environment.actionSchema.extend({ episode_id: text().default('') }),
    routes: ROUTES,
    answerStray: (action, episodeId): StepResult => {
      const { say } = action as { say: string }
      return { observation: { said: say, stray: episodeId }, reward: 0.001, done: true, metadata: { stray: true } }
    },
  }
}

const buildRouted = (t: TestContext, options: ServiceOptions = {}) => build(t, { environments: [routed()], ...options })

const post = { method: 'POST', headers: { 'content-type': 'application/json' } } as const

for (const prefix of ['', '/probe']) {
  test(`routes of an environment answer below ${prefix || 'the root'}, checked like those of the edge`, async t => {
    const { app } = await buildRouted(t)
    assert.deepEqual((await app.inject(`${prefix}/double?number=4`)).json(), { doubled: 8 })
    assert.deepEqual((await app.inject({ ...post, url: `${prefix}/double`, payload: '{"number":"5"}' })).json(), {
      doubled: 10,
    })
    assert.deepEqual((await app.inject({ method: 'POST', url: `${prefix}/double` })).json(), { doubled: 42 })
    const missing = await app.inject(`${prefix}/double`)
    assert.equal(missing.statusCode, 422)
    assert.deepEqual(missing.json().detail[0].loc, ['query', 'number'])
    const unknown = await app.inject({ ...post, url: `${prefix}/double`, payload: '{"numbr":5}' })
    assert.deepEqual([unknown.statusCode, unknown.json().detail[0].type], [422, 'extra_forbidden'])
    assert.deepEqual(unknown.json().detail[0].loc, ['body', 'numbr'])
    assert.deepEqual((await app.inject(`${prefix}/reset`)).json(), { status: 'ok' })
    assert.equal((await app.inject({ ...post, url: `${prefix}/reset`, payload: '{}' })).statusCode, 200)
  })
}

test('a route that fails answers with the status of the failure', async t => {
  const { app } = await buildRouted(t)
  const reply = await app.inject({ method: 'POST', url: '/busy' })
  assert.equal(reply.statusCode, 503)
  assert.deepEqual(reply.json(), { detail: 'try again', code: 'worker_start_failed', retry: true })
  assert.equal(reply.headers['retry-after'], '1')
})

test('405 and Allow know the routes of the environment', async t => {
  const { app } = await buildRouted(t)
  const reply = await app.inject({ method: 'DELETE', url: '/double' })
  assert.deepEqual([reply.statusCode, reply.headers.allow], [405, 'GET, POST'])
})

test('OpenAPI shows the routes beside the paths of the edge', async t => {
  const { app } = await buildRouted(t)
  const { paths } = (await app.inject('/openapi.json')).json()
  assert.deepEqual(Object.keys(paths['/reset']), ['post', 'get'])
  assert.deepEqual(paths['/double'].get.parameters, [
    {
      name: 'number',
      in: 'query',
      required: true,
      schema: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: 100, description: 'What to double.' },
    },
  ])
  assert.equal(
    paths['/double'].get.responses[200].content['application/json'].schema.properties.doubled.type,
    'integer',
  )
  assert.equal(paths['/double'].post.requestBody.content['application/json'].schema.additionalProperties, false)
})

test('production mode leaves out the routes at /reset, /step and /state', async t => {
  const { app } = await buildRouted(t, { mode: 'production' })
  assert.equal((await app.inject('/reset')).statusCode, 404)
  assert.equal((await app.inject('/double?number=1')).statusCode, 200)
  const { paths } = (await app.inject('/openapi.json')).json()
  assert.ok(!('/reset' in paths) && '/double' in paths)
})

test('an HTTP step that names no live episode is answered by the environment', async t => {
  const { app } = await buildRouted(t)
  const step = async (payload: object, headers: Record<string, string> = {}) => {
    const reply = await app.inject({ ...post, url: '/step', payload, headers: { ...post.headers, ...headers } })
    const { observation, reward, done, metadata } = reply.json()
    return [reply.statusCode, observation.stray ?? observation.steps, reward, done, metadata.episode_id]
  }
  assert.deepEqual(await step({ action: {} }), [200, '', 0.001, true, ''])
  await app.inject({ ...post, url: '/reset', payload: { episode_id: 'mine' } })
  assert.deepEqual(await step({ action: {} }), [200, 1, 0.5, false, 'mine'])
  assert.deepEqual(await step({ action: { episode_id: 'mine' } }), [200, 2, 0.5, false, 'mine'])
  assert.deepEqual(await step({ action: { episode_id: 'other' } }), [200, 'other', 0.001, true, 'other'])
  assert.deepEqual(await step({ action: {}, episode_id: 'body' }), [200, 'body', 0.001, true, 'body'])
  assert.deepEqual(await step({ action: {} }, { 'x-episode-id': 'head' }), [200, 'head', 0.001, true, 'head'])
  await app.inject({ ...post, url: '/reset', payload: {} })
  assert.deepEqual(await step({ action: {} }), [200, '', 0.001, true, ''])
  assert.equal((await app.inject('/state?episode_id=other')).statusCode, 404)
})

test('a socket step that names another episode is answered by the environment, and the own one goes on', async t => {
  const { url } = await listen(t, { environments: [routed()] })
  const client = await WireClient.open(t, `${url}/ws`)
  const step = async (data: object) => {
    const { observation, done } = (await client.ask({ type: 'step', data })).data as Record<string, unknown>
    return [observation, done] as [Record<string, unknown>, boolean]
  }
  assert.equal((await step({ episode_id: 'early' }))[0].stray, 'early')
  await client.ask({ type: 'reset', data: { episode_id: 'mine' } })
  assert.equal((await step({ episode_id: 'mine' }))[0].steps, 1)
  assert.deepEqual((await step({ episode_id: 'other' }))[1], true)
  assert.equal((await step({}))[0].steps, 2)
})

test('a step before the reset that names no episode is the error it is everywhere', async t => {
  const { url } = await listen(t, { environments: [routed()] })
  const client = await WireClient.open(t, `${url}/ws`)
  assert.equal((await client.ask({ type: 'step', data: {} })).data.code, 'EXECUTION_ERROR')
})

test('a refused value is named in the message of the error frame', async t => {
  const { environment } = createProbe()
  const resetSchema = environment.resetSchema.extend({
    context: text()
      .refine(value => value === 'a', { error: 'context: expected a' })
      .optional(),
  })
  const { url } = await listen(t, { environments: [{ ...environment, resetSchema }] })
  const client = await WireClient.open(t, `${url}/ws`)
  await client.ask({ type: 'reset', data: { episode_id: 'kept' } })
  const { data } = await client.ask({ type: 'reset', data: { context: 'b' } })
  assert.deepEqual([data.code, data.message], ['VALIDATION_ERROR', 'Invalid message: context: expected a'])
  assert.equal((await client.ask({ type: 'state' })).data.episode_id, 'kept')
})
