/** ml_debug through the published clients, and through an HTTP client that does what its own agents do. */

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { missing, PACKAGES, PythonDriver } from './python-driver.ts'
import { type RunningServer, serve } from './serve.ts'

type AgentEpisode = {
  health: object
  tasks: string[]
  description: string
  error_log: string
  texts: string[]
  reward: number
  done: boolean
  after: string
}
type GenericEpisode = {
  task_id: string
  rewards: (number | null)[]
  done: boolean[]
  value: number
  state: Record<string, unknown>
  error: string
}

// Importing a client takes seconds, so the versions run side by side.
suite('ml_debug through its clients', { concurrency: PACKAGES.length }, () => {
  let server: RunningServer
  before(async () => {
    server = await serve({ FORKYARD_TORCH: 'cpu', FORKYARD_ENV: 'ml_debug', WARM_SPARES: '1' })
  })
  after(() => server.close())

  for (const client of PACKAGES) {
    suite(client.name, { skip: missing(client), concurrency: false }, () => {
      let driver: PythonDriver
      before(() => {
        driver = new PythonDriver(client)
      })
      after(() => driver.close())

      for (const path of ['', '/ml_debug']) {
        test(`an agent that slices and formats what it gets plays an episode at ${path || '/'}`, async () => {
          const seen = await driver.run<AgentEpisode>('ml_debug_episodes.agent_episode', server.url + path, {
            task_id: 'task1',
          })
          assert.deepEqual(seen.health, { status: 'healthy' })
          assert.deepEqual(seen.tasks, ['task1', 'task2', 'task3', 'task4', 'task5', 'task6'])
          assert.ok(seen.description.length > 0)
          const [snippet, tensor, odd, state, probe, empty, diff, submission] = seen.texts
          assert.match(snippet ?? '', /^exit=1 hello\n ValueError: no/)
          assert.equal(tensor, '[2, 3] torch.float32 min_val=1.000000 max_val=1.000000 mean_val=1.000000 []')
          assert.match(odd ?? '', /\['is_nan', 'is_inf'\]$/)
          assert.match(state ?? '', /^w\.shape=torch\.Size\(\[2, 3\]\) missing=Failed to evaluate/)
          assert.match(probe ?? '', /^\d+ losses, last True, /)
          assert.equal(empty, 'inspect_tensor: ERROR target_expression is empty: there is nothing to evaluate')
          assert.equal(diff, '2 (+2/-0)')
          assert.match(submission ?? '', /^reward=/)
          assert.ok(seen.reward > 0 && seen.reward <= 0.25 && seen.done)
          assert.equal(seen.after, 'Episode already complete. Call reset() to start a new episode.')
        })
      }

      test('GenericEnvClient plays an episode', async () => {
        const episodeId = `by ${client.name}`
        const seen = await driver.run<GenericEpisode>('ml_debug_episodes.generic_episode', server.url, {
          episode_id: episodeId,
        })
        assert.deepEqual([seen.task_id, seen.value], ['task2', 42])
        assert.deepEqual(seen.rewards, [null, null, null, 0.001])
        assert.deepEqual(seen.done, [false, false, false, true])
        assert.equal(seen.error, 'Empty code submitted')
        const { episode_id, step_count, task_id, seed, turns_remaining } = seen.state
        assert.deepEqual([episode_id, step_count, task_id, seed, turns_remaining], [episodeId, 2, 'task2', 3, 8])
      })

      test('MCPToolClient calls the actions as tools', async () => {
        const seen = await driver.run<{ names: string[]; task_id: string; mean_val: number }>(
          'ml_debug_episodes.tool_calls',
          `${server.url}/ml_debug`,
        )
        assert.equal(seen.names.length, 6)
        assert.deepEqual([seen.task_id, seen.mean_val], ['task3', 2])
      })
    })
  }
})
