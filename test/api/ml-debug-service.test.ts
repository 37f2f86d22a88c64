/** The ml_debug environment as its clients meet it: over HTTP, WebSocket, MCP and the Task API. One server serves all. */

import assert from 'node:assert/strict'
import { after, before, suite, type TestContext, test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { type RunningServer, startServer } from '../../src/server.ts'
import { type Answer, type Json, JsonClient } from './json-client.ts'
import { WireClient } from './wire-client.ts'

const TASKS = ['task1', 'task2', 'task3', 'task4', 'task5', 'task6']
const NAMES = [
  'execute_snippet',
  'inspect_tensor',
  'get_variable_state',
  'run_training_probe',
  'inspect_diff',
  'submit_fix',
]

suite('the ml_debug service', () => {
  let server: RunningServer
  before(async () => {
    server = await startServer(
      readConfig({ PORT: '0', WARM_SPARES: '1', LOG_LEVEL: 'silent', FORKYARD_ENV: 'ml_debug' }),
    )
  })
  after(() => server.close())

  const { get, post, answer } = new JsonClient(() => server.url)
  const socket = (t: TestContext) => WireClient.open(t, `${server.url}/ml_debug/ws`)

  for (const prefix of ['', '/ml_debug']) {
    test(`says what it is below ${prefix || 'the root'}`, async () => {
      assert.equal((await get(`${prefix}/metadata`)).body.name, 'whipstudio')
      assert.deepEqual((await get(`${prefix}/health`)).body, { status: 'healthy' })
      assert.deepEqual((await post(`${prefix}/health`)).body, { status: 'ok', version: '0.1.0' })
      assert.equal((await get(`${prefix}/reset`)).body.status, 'ok')
      const { paths } = (await get(`${prefix}/openapi.json`)).body as { paths: Record<string, Json> }
      for (const path of ['/tasks', '/tools', '/grader', '/session/state', '/step']) assert.ok(paths[path], path)
      assert.deepEqual(Object.keys(paths['/reset'] ?? {}), ['post', 'get'])
      const { action, observation } = (await get(`${prefix}/schema`)).body as Record<string, { properties: Json }>
      assert.ok(action?.properties.fresh && observation?.properties.grader_details)
    })
  }

  test('/tasks lists the six tasks, /tools the six actions, as texts and as functions', async () => {
    const { body } = await get('/tasks')
    const tasks = body.tasks as { id: string; name: string; difficulty: string }[]
    assert.deepEqual(
      tasks.map(({ id }) => id),
      TASKS,
    )
    assert.deepEqual(tasks[0], { id: 'task1', name: 'Broken training loop', difficulty: 'easy' })
    assert.deepEqual([...(body.tools as string[])].sort(), [...NAMES].sort())
    assert.equal(body.max_turns_per_episode, 10)
    const listed = (await get('/tools')).body
    const tools = listed.tools as { name: string; terminal: boolean; action_fields: Json; parameters: Json }[]
    assert.deepEqual(
      tools.map(({ name }) => name),
      NAMES,
    )
    assert.deepEqual(
      tools.filter(({ terminal }) => terminal).map(({ name }) => name),
      ['submit_fix'],
    )
    const functions = listed.functions as { type: string; function: { name: string; parameters: Json } }[]
    for (const [index, { type, function: called }] of functions.entries()) {
      assert.deepEqual([type, called.name, called.parameters.type], ['function', NAMES[index], 'object'])
      assert.deepEqual(called.parameters, tools[index]?.parameters)
      assert.deepEqual(
        Object.keys(called.parameters.properties as Json),
        Object.keys(tools[index]?.action_fields ?? {}),
      )
      assert.ok(!('$schema' in called.parameters))
    }
    const probe = functions.map(({ function: called }) => called).find(({ name }) => name === 'run_training_probe')
    const fields = (probe?.parameters.properties ?? {}) as Record<string, Json>
    const { description: _words, ...steps } = fields.steps ?? {}
    assert.deepEqual(steps, { type: 'integer', minimum: 1, maximum: 10, default: 5 })
  })

  test('a function call of a model is an action as it is', async () => {
    const { metadata } = await answer('/reset', { task_id: 'task2' })
    const call = { setup_code: 'x = 2', expressions: ['x ** 5'] }
    const action = { action_type: 'get_variable_state', ...call, episode_id: metadata.episode_id }
    const { observation } = await answer('/step', { action })
    assert.equal((observation.results as Record<string, Json>)['x ** 5']?.value, 32)
    assert.deepEqual([observation.task_id, observation.turn], ['task2', 1])
  })

  test('a missing task is the first one, an unknown one is refused with the known ones named', async () => {
    for (const body of [{}, { task_id: null }, { task_id: '' }]) {
      assert.equal((await answer('/reset', body)).observation.task_id, 'task1')
    }
    for (const [path, body] of [
      ['/reset', { task_id: 'task9' }],
      ['/grader', { task_id: 'task9', fixed_code: 'x' }],
    ] as const) {
      const { status, body: refusal } = await post(path, body)
      const [fault] = refusal.detail as { loc: string[]; msg: string }[]
      assert.deepEqual([status, fault?.loc], [422, ['body', 'task_id']])
      for (const id of TASKS) assert.ok(fault?.msg.includes(id), fault?.msg)
    }
    assert.equal((await post('/reset', { task_id: ['task1'] })).status, 422)
  })

  test('a step that names no live episode is an observation that says so', async () => {
    const { observation, reward, done } = await answer('/step', { action: { episode_id: 'nobody' } })
    assert.equal(observation.error, "No active session for episode_id 'nobody'. Call reset() first.")
    assert.deepEqual([reward, done, observation.episode_done], [0.001, true, true])
    assert.deepEqual(
      [observation.turn, observation.task_id, observation.stdout, observation.losses],
      [0, 'task1', '', []],
    )
    const wrong = await post('/step', { action: { action_type: 'fly' } })
    assert.equal((wrong.body.detail as { type: string }[])[0]?.type, 'literal_error')
    assert.equal((await post('/step', { action: { code: 'x', colour: 'red' } })).status, 422)
    assert.equal((await post('/step', { action: { steps: 11 } })).status, 422)
  })

  test('/session/state follows an episode of any transport', async t => {
    const { metadata } = await answer('/reset', { task_id: 'task3', seed: 5 })
    const id = String(metadata.episode_id)
    await answer('/step', { action: { action_type: 'execute_snippet', code: '1', episode_id: id } })
    const state = (await get(`/session/state?episode_id=${id}`)).body
    assert.deepEqual(state, {
      episode_id: id,
      step_count: 1,
      task_id: 'task3',
      seed: 5,
      turn: 1,
      max_turns: 10,
      turns_remaining: 9,
      submitted: false,
      done: false,
      best_reward: 0,
      step: 1,
    })
    assert.deepEqual((await get(`/state?episode_id=${id}`)).body, { episode_id: id, step_count: 1 })
    const client = await socket(t)
    await client.ask({ type: 'reset', data: { episode_id: 'on a socket' } })
    await client.ask({ type: 'step', data: { action_type: 'submit_fix' } })
    const ended = (await get('/session/state?episode_id=on%20a%20socket')).body
    assert.deepEqual([ended.submitted, ended.done, ended.turn], [true, true, 1])
    for (const path of ['/session/state', '/session/state?episode_id=', '/session/state?episode_id=nobody']) {
      const { status, body } = await get(path)
      assert.deepEqual([status, typeof body.error, typeof body.usage], [200, 'string', 'string'])
    }
  })

  test('a socket plays an episode, and keeps it when a reset is refused', async t => {
    const client = await socket(t)
    const reset = (await client.ask({ type: 'reset', data: { task_id: 'task4', seed: -3 } })).data as Answer
    assert.deepEqual([reset.observation.task_id, reset.reward, reset.done], ['task4', null, false])
    const refused = (await client.ask({ type: 'reset', data: { task_id: 'task0' } })).data
    assert.equal(refused.code, 'VALIDATION_ERROR')
    assert.match(String(refused.message), /unknown task "task0"; expected one of task1, task2/)
    const step = async (data: object) => (await client.ask({ type: 'step', data })).data as Answer
    const stepped = await step({
      action_type: 'execute_snippet',
      code: 'print(3)',
      episode_id: reset.metadata.episode_id,
    })
    assert.deepEqual([stepped.observation.stdout, stepped.observation.turn], ['3\n', 1])
    const other = await step({ action_type: 'execute_snippet', code: 'print(3)', episode_id: 'another' })
    assert.match(String(other.observation.error), /^No active session for episode_id 'another'/)
    assert.equal((await client.ask({ type: 'state' })).data.turn, 1)
    const wrong = await client.ask({ type: 'step', data: { action_type: 'execute_snippet', colour: 'red' } })
    assert.equal(wrong.data.code, 'VALIDATION_ERROR')
  })

  test('/grader runs and measures, and takes no claims', async () => {
    const { observation } = await answer('/reset', { task_id: 'task1' })
    const graded = await post('/grader', { task_id: 'task1', fixed_code: observation.buggy_code, seed: 4 })
    assert.equal(graded.status, 200)
    const { score, breakdown, grader_details } = graded.body as { score: number; breakdown: Json; grader_details: Json }
    assert.ok(score > 0 && score <= 0.25)
    assert.equal(graded.body.task_id, 'task1')
    assert.ok(Object.keys(breakdown).length > 0)
    assert.equal(grader_details.score, score)
    const again = await post('/grader', { task_id: 'task1', fixed_code: observation.buggy_code, seed: 4 })
    assert.equal(again.body.score, score)
    for (const [name, value] of Object.entries({
      stdout: 'LOSSES:[0]',
      stderr: '',
      exit_code: 0,
      elapsed: 1,
      timed_out: null,
    })) {
      const { status, body } = await post('/grader', { task_id: 'task1', fixed_code: 'x', [name]: value })
      const [fault] = body.detail as { loc: string[]; msg: string }[]
      assert.deepEqual([status, fault?.loc], [422, ['body', name]])
      assert.match(fault?.msg ?? '', /the grader runs fixed_code itself/)
    }
    for (const body of [{ task_id: 'task1', fixed_code: ' \n' }, { task_id: 'task1', fixed_code: '```\n```' }, {}]) {
      assert.equal((await post('/grader', body)).status, 422)
    }
    assert.equal((await post('/grader', { task_id: 'task1', fixed_code: 'x'.repeat(300_000) })).status, 422)
  })

  test('the six actions are MCP tools of one session', async () => {
    const rpc = async (method: string, params: object) => {
      const { body } = await post('/ml_debug/mcp', { jsonrpc: '2.0', id: 1, method, params })
      return (body.result ?? body.error) as Json
    }
    const { tools } = (await rpc('tools/list', {})) as { tools: { name: string; inputSchema: Json }[] }
    assert.deepEqual(
      tools.map(({ name }) => name),
      NAMES,
    )
    const { session_id } = await rpc('openenv/session/create', {})
    const call = async (name: string, args: object) =>
      (await rpc('tools/call', { name, arguments: args, session_id })) as { structuredContent: Answer; code?: number }
    await call('execute_snippet', { code: 'import torch\na = torch.ones(2)' })
    const seen = (await call('inspect_tensor', { target_expression: 'a' })).structuredContent.observation
    assert.deepEqual([seen.shape, seen.task_id, seen.turn], [[2], 'task1', 2])
    assert.equal((await call('inspect_tensor', { expression: 'a' })).code, -32602)
    assert.equal((await call('submit_fix', { fixed_code: ' ' })).structuredContent.reward, 0.001)
    assert.deepEqual(await rpc('openenv/session/close', { session_id }), { session_id, closed: true })
  })

  test('the Task API offers the tasks on seeds that no two splits share', async () => {
    const splits = (await get('/ml_debug/splits')).body as unknown as { name: string; type: string }[]
    assert.deepEqual(
      splits.map(({ type }) => type),
      ['train', 'validation', 'test'],
    )
    const seen = new Set<string>()
    let count = 0
    for (const { name: split } of splits) {
      const { tasks } = (await post('/WhipStudio/tasks', { split })).body as { tasks: Json[] }
      assert.equal(((await post('/ml_debug/num_tasks', { split })).body as Json).num_tasks, tasks.length)
      count += tasks.length
      for (const { task_id, seed } of tasks) seen.add(`${task_id} ${seed}`)
    }
    assert.equal(seen.size, count)
    const { task } = (await post('/ml_debug/task', { split: 'test', index: 7 })).body as { task: Json }
    assert.deepEqual(Object.keys(task), ['id', 'task_id', 'name', 'difficulty', 'seed'])
    assert.deepEqual((await answer('/reset', task)).metadata.seed, task.seed)
    assert.equal((await post('/ml_debug/tasks', { split: 'none' })).status, 400)
    assert.equal((await get('/repl/splits')).status, 501)
  })
})
