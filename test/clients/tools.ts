/** Tools through the MCP tool clients, in every mode they have. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientBench } from './client-bench.ts'
import { PACKAGES } from './python-driver.ts'
import type { ReplMetadata, ReplStep } from './wire.ts'

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

type Handshake = { tools: string[]; shown: ReplStep; text: string; refused: string; ended: ReplStep }

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

  for (const path of ['', '/repl']) {
    test(`a full MCP client shakes hands and calls tools at ${path || '/'}`, async () => {
      const seen = await bench.run<Handshake>('mcp_handshake.tool_calls', bench.url + path)
      assert.deepEqual(seen.tools.slice(0, 2), ['execute', 'submit_final_answer'])
      assert.equal(seen.shown.observation.result.stdout.trim(), '6')
      assert.deepEqual(JSON.parse(seen.text), seen.shown)
      assert.match(seen.refused, /^ToolError: Invalid arguments: /)
      assert.equal(seen.ended.done, true)
    })
  }

  test('works through the synchronous wrapper', async () => {
    const seen = await bench.run<{ tools: string[]; shown: Shown }>('mcp_episodes.synchronous', bench.url)
    assert.deepEqual(seen.tools, ['execute', 'submit_final_answer'])
    assert.equal(seen.shown.result.stdout.trim(), '2')
  })

  // The older version holds one session on its socket and another over HTTP.
  if (bench.client !== PACKAGES[0]) return
  test('reset on the socket and tools over HTTP mean one episode', async () => {
    const seen = await bench.run<{ reset: ReplMetadata; state: Record<string, unknown>; shown: Shown }>(
      'mcp_episodes.shared_session',
      bench.url,
    )
    assert.equal(seen.reset.message, 'Environment ready.')
    assert.equal(seen.state.episode_id, 'shared-1')
    assert.equal(seen.state.step_count, 1)
    assert.equal(seen.shown.result.stdout.trim(), '5')
  })
}
