/** The conformance checks of the published packages, and contexts beyond the original's frame limit. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientBench } from './client-bench.ts'
import { PACKAGES } from './python-driver.ts'

type Report = {
  passed: boolean
  mode: string
  standard_profile: string
  summary: { failed_criteria: string[] }
  criteria: unknown[]
}
type Suite = {
  failure: string | null
  exchanges: number
  results: Record<string, { status: string; evidence: string[] }>
}

/** Define the tests of this group for one client version. */
export function checkTests(bench: ClientBench): void {
  // The newer one prints text unless told otherwise; the older one always prints the report.
  const flags = bench.client === PACKAGES[0] ? ['--json'] : []

  const validate = (url: string) =>
    bench.run<{ exit_code: number; report: Report }>('validation.validate_running', url, { flags })

  for (const path of ['', '/repl']) {
    test(`openenv validate --url passes at ${path || '/'}`, async () => {
      const { exit_code: exitCode, report } = await validate(bench.url + path)
      assert.deepEqual(report.summary.failed_criteria, [])
      assert.equal(exitCode, 0)
      assert.equal(report.passed, true)
      assert.equal(report.criteria.length, 6)
      assert.equal(report.mode, 'simulation')
      assert.equal(report.standard_profile, 'openenv-http/1.x')
    })
  }

  test('openenv validate --url passes in production mode', async () => {
    const { exit_code: exitCode, report } = await validate(bench.productionUrl)
    assert.deepEqual(report.summary.failed_criteria, [])
    assert.equal(exitCode, 0)
    assert.equal(report.mode, 'production')
  })

  for (const megabytes of [20, 100]) {
    test(`a context of ${megabytes} MB reaches the episode through the socket`, async () => {
      const length = megabytes * 1_000_000
      const seen = await bench.run<Record<string, unknown>>('large_context.context_of', bench.url, { megabytes })
      assert.equal(seen.context_length, length)
      assert.equal(seen.preview_length, 500)
      assert.equal(seen.ends, `${length} < >`)
      assert.equal(seen.again, String(length - 2))
    })
  }

  test('a state frame brings a large context back', async () => {
    assert.equal(await bench.run<number>('large_context.state_of', bench.url, { megabytes: 20 }), 20_000_000)
  })

  // The older version has no runtime graders.
  if (bench.client !== PACKAGES[0]) return
  for (const path of ['', '/repl']) {
    test(`raw frames pass the runtime graders at ${path || '/'}`, async () => {
      const seen = await bench.run<Suite>('validation.runtime_suite', bench.url + path)
      assert.equal(seen.failure, null)
      // A reset and four steps, each followed by a state.
      assert.equal(seen.exchanges, 10)
      assert.equal(Object.keys(seen.results).length, 3)
      for (const [check, { status, evidence }] of Object.entries(seen.results)) {
        assert.equal(status, 'pass', `${check}: ${evidence.join('; ')}`)
      }
    })
  }
}
