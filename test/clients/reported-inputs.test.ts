/** Inputs from public reports against systems like this one, through the published client; one test each. */

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { descendants, residentBytes } from '../process-table.ts'
import { missing, PACKAGES, PythonDriver } from './python-driver.ts'
import { type RunningServer, serve } from './serve.ts'
import type { ReplMetadata, ReplStep, TimedStep } from './wire.ts'

const [client] = PACKAGES
const MEMORY_MIB = 512

suite(`reported inputs through ${client.name}`, { skip: missing(client) }, () => {
  let server: RunningServer
  let impatient: RunningServer
  let driver: PythonDriver

  before(async () => {
    driver = new PythonDriver(client)
    server = await serve({ EPISODE_MEMORY_MIB: String(MEMORY_MIB) })
    impatient = await serve({ STEP_TIMEOUT_S: '1' })
  })
  after(() => Promise.all([driver.close(), server.close(), impatient.close()]))

  test('an answer keeps its brackets, and an open bracket is no answer', async () => {
    const [nested, pair, unclosed] = await driver.run<[ReplStep, ReplStep, ReplStep]>(
      'reported_inputs.bracketed_answers',
      server.url,
    )
    assert.deepEqual([nested.done, nested.metadata?.final_answer, nested.reward], [true, 'max(3, (4))', 1])
    assert.deepEqual([pair.done, pair.metadata?.final_answer, pair.reward], [true, '(1, 2)', 1])
    assert.equal(unclosed.done, false)
    assert.equal(unclosed.reward, 0)
  })

  test('metadata is on the result and in the observation, never null', async () => {
    const seen = await driver.run<Record<'reset' | 'nested', ReplMetadata> & { results: ReplMetadata[] }>(
      'reported_inputs.metadata_for_both_readers',
      server.url,
    )
    assert.equal(seen.reset.task_prompt, 'Length?')
    assert.equal(seen.nested.final_answer, '2')
    const [reset, , , final, repeated] = seen.results
    assert.equal(reset?.task_prompt, 'Length?')
    assert.equal(final?.final_answer, '2')
    assert.equal(repeated?.final_answer, '2')
    for (const metadata of seen.results) assert.ok(typeof metadata === 'object' && metadata !== null)
  })

  test('a syntax error shows nothing of the step before', async () => {
    const [printed, broken] = await driver.run<[TimedStep, TimedStep]>(
      'reported_inputs.syntax_error_after_print',
      server.url,
    )
    const { result, available_variables: names } = broken.observation
    assert.equal(printed.observation.result.stdout.trim(), 'one')
    assert.equal(result.stdout, '')
    assert.equal(result.success, false)
    assert.match(result.exception ?? '', /^SyntaxError/)
    assert.equal(broken.reward, -0.05)
    assert.deepEqual(names, printed.observation.available_variables)
  })

  test('a sleeping step is cut at its limit and the next one answers', async () => {
    const [cut, next] = await driver.run<[TimedStep, TimedStep]>('reported_inputs.sleeper_is_cut', impatient.url)
    assert.ok(cut.waited_s > 0.9 && cut.waited_s < 5, `waited ${cut.waited_s} s`)
    assert.equal(cut.observation.result.success, false)
    assert.match(cut.observation.result.exception ?? '', /time/i)
    assert.equal(cut.metadata?.reason, 'timeout')
    assert.equal(typeof cut.metadata?.state_kept, 'boolean')
    assert.equal(next.observation.result.stdout.trim(), 'alive')
    assert.equal(typeof next.metadata?.state_kept, 'boolean')
    assert.ok(next.waited_s < 2, `waited ${next.waited_s} s`)
  })

  test('a raising step keeps its names and its prints', async () => {
    const [failing, after] = await driver.run<[TimedStep, TimedStep]>(
      'reported_inputs.failing_cell_keeps_names',
      server.url,
    )
    const { result, available_variables: names } = failing.observation
    assert.equal(result.success, false)
    assert.match(result.exception ?? '', /^ValueError: boom/)
    assert.equal(result.stdout.trim(), 'started')
    assert.equal(result.locals_snapshot.got, '[0, 1, 2, 3]')
    assert.ok(names.includes('got'))
    assert.equal(after.observation.result.stdout.trim(), '4')
  })

  test('helpers and context come back after they were overwritten', async () => {
    const [, used] = await driver.run<[TimedStep, TimedStep]>('reported_inputs.reserved_names_come_back', server.url)
    assert.match(used.observation.result.stdout, /^6 True\n/)
    assert.equal(used.done, true)
    assert.equal(used.metadata?.final_answer, 'ok')
  })

  test('nan and inf are text in strictly valid frames', async () => {
    const [nan, nested, inf] = await driver.run<[ReplStep, ReplStep, ReplStep]>(
      'reported_inputs.numbers_json_lacks',
      server.url,
    )
    assert.equal(nan.observation.result.stdout.trim(), 'nan')
    assert.match(nested.observation.result.stdout, /-inf/)
    assert.equal(inf.observation.result.stdout.trim(), 'inf')
    assert.equal(inf.observation.result.locals_snapshot.x, 'nan')
  })

  test('a step that takes all memory is stopped by name and disturbs nobody', async () => {
    const before = residentBytes(descendants(process.pid, driver.pid))
    const seen = await driver.run<{ hogs: TimedStep[]; neighbour: { wanted: string; stdout: string }[] }>(
      'reported_inputs.memory_hogs',
      server.url,
    )
    const [block, loop, back] = seen.hogs
    for (const hog of [block, loop]) {
      const { result, metadata } = hog?.observation ?? assert.fail('a step is missing')
      assert.equal(result.success, false)
      assert.match(`${result.exception} ${metadata.reason}`, /MemoryError|memory_limit/)
      assert.ok((hog?.waited_s ?? 0) < 15, `waited ${hog?.waited_s} s`)
    }
    assert.equal(back?.observation.result.stdout.trim(), 'back')
    assert.ok(seen.neighbour.length > 1)
    for (const { wanted, stdout } of seen.neighbour) assert.equal(stdout, wanted)
    const grown = residentBytes(descendants(process.pid, driver.pid)) - before
    assert.ok(grown < (MEMORY_MIB * 1024 * 1024) / 2, `${grown} bytes were not given back`)
  })

  test('raw writes to stdout are output of the step and nothing else', async () => {
    const [raw, next] = await driver.run<[TimedStep, TimedStep]>('reported_inputs.forged_reply_on_stdout', server.url)
    const { stdout, success } = raw.observation.result
    assert.equal(success, true)
    for (const line of ['{"id": 1, "ok": true}', 'raw', 'end']) assert.ok(stdout.split('\n').includes(line), stdout)
    assert.equal(next.observation.result.stdout.trim(), 'next')
  })
})
