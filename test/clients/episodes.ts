/** Episodes through the generic, the typed and the HTTP clients. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientBench } from './client-bench.ts'
import type { ReplMetadata, ReplStep } from './wire.ts'

type EpisodeSummary = { reset: ReplStep; steps: ReplStep[]; state: Record<string, unknown> }

/** Define the tests of this group for one client version. */
export function episodeTests(bench: ClientBench): void {
  for (const [where, path] of [
    ['at the root', ''],
    ['at the prefix', '/repl'],
  ] as const) {
    for (const style of ['async', 'sync'] as const) {
      test(`GenericEnvClient, ${style}, plays an episode ${where}`, async () => {
        const episodeId = `${style}${path}`
        const { reset, steps, state } = await bench.run<EpisodeSummary>(
          `generic_episodes.${style}_episode`,
          bench.url + path,
          { episode_id: episodeId },
        )
        assert.equal(reset.done, false)
        assert.equal(reset.observation.context_length, 5)
        assert.equal(reset.observation.context_preview, 'hello')
        const [bound, printed, final] = steps
        assert.equal(bound?.observation.result.stdout, '')
        assert.deepEqual(bound?.observation.result.locals_snapshot, { n: '5' })
        assert.equal(printed?.observation.result.stdout.trim(), '6')
        assert.equal(printed?.reward, 0)
        assert.equal(final?.done, true)
        assert.equal(final?.reward, 1)
        assert.equal(state.episode_id, episodeId)
        assert.equal(state.step_count, 3)
        assert.equal(state.final_answer, '5')
        assert.equal(state.context, 'hello')
      })
    }

    test(`reset and final answer carry metadata to both kinds of readers ${where}`, async () => {
      for (const reader of ['nested', 'top']) {
        const seen = await bench.run<Record<'reset' | 'ordinary' | 'final', ReplMetadata> & { done: boolean }>(
          'typed_episodes.metadata_reaches',
          bench.url + path,
          { reader },
        )
        assert.equal(seen.reset.task_prompt, 'How long is it?')
        assert.equal(seen.reset.message, 'Environment ready.')
        assert.equal(seen.ordinary.reason, 'ok')
        assert.equal(seen.final.final_answer, '2')
        assert.equal(seen.done, true)
      }
    })

    test(`plain HTTP keeps an episode between requests ${where}`, async () => {
      const episodeId = `http by ${bench.client.name}${path}`
      const seen = await bench.run<{ statuses: number[]; reset: ReplStep; steps: ReplStep[]; state: object }>(
        'http_episodes.requests_episode',
        bench.url + path,
        { episode_id: episodeId },
      )
      assert.deepEqual(seen.statuses, [200, 200, 200, 200, 200, 200, 404])
      assert.equal(seen.reset.observation.context_length, 5)
      assert.equal(seen.steps[1]?.observation.result.stdout.trim(), '6')
      assert.equal(seen.steps[2]?.done, true)
      assert.equal(seen.steps[2]?.metadata?.final_answer, '5')
      assert.deepEqual(seen.state, { episode_id: episodeId, step_count: 3 })
    })

    test(`plain HTTP keeps interleaved episodes apart ${where}`, async () => {
      const seen = await bench.run<{ ids: string[]; texts: string[] }>('http_episodes.httpx_episodes', bench.url + path)
      assert.notEqual(seen.ids[0], seen.ids[1])
      assert.deepEqual(
        seen.texts.map(text => text.trim()),
        ['3', '5'],
      )
    })
  }

  test('clients side by side never see each other', async () => {
    const texts = await bench.run<string[]>('generic_episodes.side_by_side', bench.url, { clients: 6 })
    assert.deepEqual(
      texts,
      [0, 1, 2, 3, 4, 5].map(number => `${number} of ${number}`),
    )
  })

  test('an error frame raises RuntimeError and the connection goes on', async () => {
    const seen = await bench.run<Record<string, string> & Record<'exit_step' | 'after' | 'fresh', ReplStep>>(
      'generic_episodes.errors_then_work',
      bench.url,
    )
    const notReset =
      'RuntimeError: Server error: Environment not initialized. Call reset() first. (code: EXECUTION_ERROR)'
    const invalid = 'RuntimeError: Server error: Invalid message (code: VALIDATION_ERROR)'
    assert.equal(seen.early_step, notReset)
    assert.equal(seen.early_state, notReset)
    assert.equal(seen.unknown_key, invalid)
    assert.equal(seen.wrong_type, invalid)
    assert.equal(seen.wrong_reset, invalid)
    assert.equal(seen.exit_step.observation.result.success, false)
    assert.equal(seen.after.observation.result.stdout.trim(), '42')
    assert.equal(seen.step_count, 3)
    assert.equal(seen.fresh.observation.result.stdout.trim(), 'False')
  })

  test('the calls of a typed REPL client work, get_variable too', async () => {
    const seen = await bench.run<Record<string, unknown> & { names: string[]; state: Record<string, unknown> }>(
      'typed_episodes.convenience_calls',
      bench.url,
    )
    assert.equal(String(seen.variable).trim(), "'ABC'")
    assert.ok(seen.names.includes('word') && seen.names.includes('context') && seen.names.includes('answer'))
    assert.equal(seen.done, true)
    assert.equal(seen.reward, 1)
    assert.equal(seen.state.final_answer, 'abc')
    assert.equal(seen.state.max_iterations, 30)
  })

  test('refusals over HTTP have the shape of the original', async () => {
    const seen = await bench.run<Record<string, unknown>>('http_episodes.defaults_and_refusals', bench.url)
    assert.equal(seen.bare, 200)
    assert.deepEqual(seen.health, { status: 'healthy' })
    assert.deepEqual(seen.refusals, [
      { status: 422, type: 'greater_than_equal', loc: ['body', 'seed'] },
      { status: 422, type: 'string_type', loc: ['code'] },
      { status: 422, type: 'missing', loc: ['body', 'action'] },
    ])
  })
}
