import assert from 'node:assert/strict'
import { test } from 'node:test'
import { build, listen } from './service.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

type Case = {
  name: string
  url: '/reset' | '/step'
  payload?: string | Buffer
  type?: string | null
  status: number
  items?: [type: string, loc: (string | number)[], input?: unknown][]
  detail?: string
}
const cases: Case[] = [
  { name: 'no body on /step', url: '/step', status: 422, items: [['missing', ['body'], null]] },
  { name: 'an empty body on /step', url: '/step', payload: '', status: 422, items: [['missing', ['body'], null]] },
  {
    name: 'null on /step',
    url: '/step',
    payload: 'null',
    status: 422,
    items: [['model_attributes_type', ['body'], null]],
  },
  { name: 'no action', url: '/step', payload: '{}', status: 422, items: [['missing', ['body', 'action'], {}]] },
  {
    name: 'a number as action',
    url: '/step',
    payload: '{"action":5}',
    status: 422,
    items: [['dict_type', ['body', 'action'], 5]],
  },
  {
    name: 'bad fields of the envelope',
    url: '/step',
    payload: '{"action":{},"timeout_s":0,"request_id":5,"episode_id":[]}',
    status: 422,
    items: [
      ['greater_than', ['body', 'timeout_s'], 0],
      ['string_type', ['body', 'request_id'], 5],
      ['string_type', ['body', 'episode_id'], []],
    ],
  },
  {
    name: 'a text as time limit',
    url: '/step',
    payload: '{"action":{},"timeout_s":"soon"}',
    status: 422,
    items: [['float_parsing', ['body', 'timeout_s'], 'soon']],
  },
  {
    name: 'bad content of an action, relative to the action',
    url: '/step',
    payload: '{"action":{"say":5,"count":11,"loud":"maybe","mode":"x","metadata":[],"q":1}}',
    status: 422,
    items: [
      ['string_type', ['say'], 5],
      ['less_than_equal', ['count'], 11],
      ['bool_parsing', ['loud'], 'maybe'],
      ['literal_error', ['mode'], 'x'],
      ['dict_type', ['metadata'], []],
      ['extra_forbidden', ['q'], 1],
    ],
  },
  {
    name: 'a fractional seed',
    url: '/reset',
    payload: '{"seed":1.5}',
    status: 422,
    items: [['int_from_float', ['body', 'seed'], 1.5]],
  },
  {
    name: 'a negative seed',
    url: '/reset',
    payload: '{"seed":-1}',
    status: 422,
    items: [['greater_than_equal', ['body', 'seed'], -1]],
  },
  {
    name: 'a seed that is no number',
    url: '/reset',
    payload: '{"seed":"x"}',
    status: 422,
    items: [['int_parsing', ['body', 'seed'], 'x']],
  },
  {
    name: 'an id of 256 characters',
    url: '/reset',
    payload: JSON.stringify({ episode_id: 'é'.repeat(256) }),
    status: 422,
    items: [['string_too_long', ['body', 'episode_id'], 'é'.repeat(256)]],
  },
  {
    name: 'malformed JSON',
    url: '/reset',
    payload: '{"é": 1,}',
    status: 422,
    items: [['json_invalid', ['body', 8], {}]],
  },
  { name: 'an array', url: '/reset', payload: '[1]', status: 422, items: [['model_attributes_type', ['body'], [1]]] },
  {
    name: 'text/plain',
    url: '/reset',
    payload: '{}',
    type: 'text/plain',
    status: 422,
    items: [['model_attributes_type', ['body'], '{}']],
  },
  {
    name: 'a form',
    url: '/reset',
    payload: 'a=1',
    type: 'application/x-www-form-urlencoded',
    status: 422,
    items: [['model_attributes_type', ['body'], 'a=1']],
  },
  {
    name: 'no content type',
    url: '/reset',
    payload: '{}',
    type: null,
    status: 422,
    items: [['model_attributes_type', ['body'], '{}']],
  },
  {
    name: 'a content type that is none',
    url: '/reset',
    payload: '{}',
    type: 'json',
    status: 422,
    items: [['model_attributes_type', ['body'], '{}']],
  },
  {
    name: 'bytes that are not UTF-8',
    url: '/reset',
    payload: Buffer.from([0x22, 0xff, 0x22]),
    status: 400,
    detail: 'There was an error parsing the body',
  },
  {
    name: 'nesting beyond any use',
    url: '/reset',
    payload: `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    status: 400,
    detail: 'There was an error parsing the body',
  },
]
for (const { name, url, payload, type, status, items, detail } of cases) {
  test(`${url} answers ${name} with ${status} and the error shape of OpenEnv`, async t => {
    const { url: base } = await listen(t)
    const headers = new Headers()
    if (payload !== undefined && type !== null) headers.set('content-type', type ?? 'application/json')
    // A Blob without a type sends no content type of its own.
    const body = payload === undefined ? null : new Blob([new Uint8Array(Buffer.from(payload as string))])
    const reply = await fetch(base + url, { method: 'POST', headers, body })
    const answer = (await reply.json()) as { detail: unknown }
    assert.equal(reply.status, status)
    if (detail !== undefined) assert.equal(answer.detail, detail)
    if (items !== undefined) {
      const seen = answer.detail as { type: string; loc: unknown; input: unknown; msg: unknown }[]
      assert.deepEqual(
        seen.map(({ type, loc, input }) => [type, loc, input]),
        items,
      )
      for (const { msg } of seen) assert.equal(typeof msg, 'string')
    }
  })
}

test('items about an action carry a url, items about the envelope do not', async t => {
  const { app } = await build(t)
  const action = await app.inject({ method: 'POST', url: '/step', payload: { action: { say: 5 } } })
  assert.equal(action.json().detail[0].url, 'https://errors.pydantic.dev/2.12/v/string_type')
  const envelope = await app.inject({ method: 'POST', url: '/step', payload: { action: 5 } })
  assert.equal('url' in envelope.json().detail[0], false)
})

test('items carry the context that clients know', async t => {
  const { app } = await build(t)
  const reply = await app.inject({
    method: 'POST',
    url: '/step',
    payload: { action: { count: 11, mode: 'x' } },
  })
  const [bound, literal] = reply.json().detail
  assert.deepEqual(bound.ctx, { le: 10 })
  assert.equal(literal.ctx.expected, "'plain', 'throw', 'reject', 'nan', 'cycle' or 'wait'")
  assert.equal(literal.msg, `Input should be ${literal.ctx.expected}`)
})

test('a +json content type, parameters and a byte order mark are JSON', async t => {
  const { app, probe } = await build(t)
  for (const type of ['application/vnd.api+json', 'application/json; charset=utf-8', 'APPLICATION/JSON']) {
    const payload = Buffer.from('\ufeff{"seed":3}')
    const reply = await app.inject({ method: 'POST', url: '/reset', payload, headers: { 'content-type': type } })
    assert.equal(reply.statusCode, 200)
  }
  assert.deepEqual(
    probe.resets.map(({ seed }) => seed),
    [3, 3, 3],
  )
})

test('keys named __proto__ and constructor change nothing', async t => {
  const { app, probe } = await build(t)
  const payload = '{"__proto__":{"seed":1},"constructor":{"prototype":{"seed":2}}}'
  const reply = await app.inject({ method: 'POST', url: '/reset', payload, headers: JSON_TYPE })
  assert.equal(reply.statusCode, 200)
  assert.equal(probe.resets[0]?.seed, undefined)
  assert.equal(({} as { seed?: unknown }).seed, undefined)
})

test('a refused value is repeated only as far as it is small', async t => {
  const { app } = await build(t)
  const big = 'x'.repeat(1_000_000)
  for (const payload of [{ seed: big }, { context: [big] }]) {
    const reply = await app.inject({ method: 'POST', url: '/reset', payload })
    assert.equal(reply.statusCode, 422)
    assert.ok(reply.body.length < 20_000, String(reply.body.length))
  }
})

test('/reset takes a body of 100 MB', async t => {
  const { url } = await listen(t)
  const body = JSON.stringify({ context: 'x'.repeat(100_000_000) })
  const reply = await fetch(`${url}/reset`, { method: 'POST', headers: JSON_TYPE, body })
  const { observation } = (await reply.json()) as { observation: { context_length: number } }
  assert.equal(observation.context_length, 100_000_000)
})

test('a body beyond the limit is 413, and says which limit', async t => {
  const { app } = await build(t, { maxBodyMib: 1 })
  const reply = await app.inject({ method: 'POST', url: '/reset', payload: { context: 'x'.repeat(1_100_000) } })
  assert.equal(reply.statusCode, 413)
  assert.match(reply.json().detail, /1 MiB \(MAX_BODY_MIB\)/)
})
