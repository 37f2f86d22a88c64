/** Tools through the MCP tool clients, in every mode they have. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientBench } from './client-bench.ts'
import { PACKAGES } from './python-driver.ts'

type Shown = { result: { stdout: string; success: boolean } }
type ToolCalls = {
  tools: Record<string, { properties: Record<string, unknown> }>
  shown: Shown
  unknown: string
  wrong: string
  raised: Shown
  after: Shown
  ended: Shown
  has: boolean
}

const MODES = [
  { mode: 'its default mode', production: null },
  { mode: 'step frames', production: false },
  { mode: 'POST /mcp', production: true },
] as const

/** Define the tests of this group for one client version. */
export function toolTests(bench: ClientBench): void {
  for (const path of ['', '/repl']) {
    for (const { mode, production } of MODES) {
      test(`lists and calls tools in ${mode} at ${path || '/'}`, async () => {
        const seen = await bench.run<ToolCalls>('mcp_episodes.tool_calls', bench.url + path, { production })
        assert.deepEqual(Object.keys(seen.tools), ['execute', 'submit_final_answer'])
        assert.ok(seen.tools.execute?.properties.code)
        assert.equal(seen.shown.result.stdout.trim(), '6')
        assert.match(seen.unknown, /^RuntimeError: Tool 'no_such_tool' failed: /)
        assert.match(seen.wrong, /^RuntimeError: Tool 'execute' failed: /)
        assert.equal(seen.raised.result.success, false)
        assert.equal(seen.after.result.stdout.trim(), '5')
        assert.equal(seen.ended.result.stdout, 'Final answer submitted.')
        assert.equal(seen.has, true)
      })
    }
  }

  test('works through the synchronous wrapper', async () => {
    const seen = await bench.run<{ tools: string[]; shown: Shown }>('mcp_episodes.synchronous', bench.url)
    assert.deepEqual(seen.tools, ['execute', 'submit_final_answer'])
    assert.equal(seen.shown.result.stdout.trim(), '2')
  })

  test('reset on the socket and tools over HTTP mean one episode', {
    skip: bench.client === PACKAGES[0] ? false : 'this version uses two sessions',
  }, async () => {
    const seen = await bench.run<{ reset: object; state: Record<string, unknown>; shown: Shown }>(
      'mcp_episodes.shared_session',
      bench.url,
    )
    assert.equal(seen.state.episode_id, 'shared-1')
    assert.equal(seen.state.step_count, 1)
    assert.equal(seen.shown.result.stdout.trim(), '5')
  })
}
