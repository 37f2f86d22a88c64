import assert from 'node:assert/strict'
import test from 'node:test'
import type { PrintedEnding } from '../../src/environment/printed-final.ts'
import { findEnding } from '../../src/environment/repl-ending.ts'
import type { CapturedText, CellOutcome } from '../../src/executor/executor.ts'

const silent: CapturedText = { text: '', total_chars: 0, total_bytes: 0, truncated: false }
const ran: CellOutcome = {
  reason: 'ok',
  state_kept: true,
  restarted: null,
  stdout: silent,
  stderr: silent,
  exception: null,
  locals: {},
  variables: [],
  final: null,
  answer: { ready: false, content: '' },
  report: null,
  usage: { wall_ms: 1, cpu_ms: 1, peak_memory_bytes: null, subcall_wait_ms: 0, queued_ms: 0 },
}

function ending(
  outcome: Partial<CellOutcome>,
  printed: Partial<PrintedEnding>,
  variables: Record<string, string> = {},
) {
  return findEnding(
    { ...ran, ...outcome },
    { answer: null, names: [], ignored: new Set(), ...printed },
    async names => ({ value: names.map(name => variables[name]).find(Boolean) ?? null, state_kept: true }),
  )
}

const ready = { ready: true, content: 'dict' }

test('findEnding() takes a helper call first', async () => {
  const found = await ending({ final: 'call', answer: ready }, { answer: 'printed', names: ['x'] }, { x: 'named' })
  assert.equal(found.answer, 'call')
})

test('findEnding() takes a printed answer second', async () => {
  const found = await ending({ answer: ready }, { answer: 'printed', names: ['x'] }, { x: 'named' })
  assert.equal(found.answer, 'printed')
})

test('findEnding() takes the first printed name with a value third', async () => {
  const found = await ending({ answer: ready }, { names: ['gone', 'x', 'y'] }, { x: 'named', y: 'other' })
  assert.deepEqual(found, { answer: 'named', notes: [], state_kept: true })
})

test('findEnding() takes a ready answer dict last, empty content included', async () => {
  assert.equal((await ending({ answer: ready }, { names: ['gone'] })).answer, 'dict')
  assert.equal((await ending({ answer: { ready: true, content: '' } }, {})).answer, '')
  assert.equal((await ending({ answer: { ready: false, content: 'draft' } }, {})).answer, null)
  assert.equal((await ending({ answer: null }, {})).answer, null)
})

test('findEnding() keeps an answer of a step that failed', async () => {
  assert.equal((await ending({ reason: 'exception', exception: 'ValueError: boom', final: 'x' }, {})).answer, 'x')
  assert.equal((await ending({ reason: 'timeout', state_kept: false }, { answer: 'x' })).answer, 'x')
})

test('findEnding() asks nothing of a namespace that was lost', async () => {
  assert.equal((await ending({ reason: 'signal', state_kept: false }, { names: ['x'] }, { x: 'new' })).answer, null)
})

test('findEnding() takes nothing from a step in which the service failed, and says so', async () => {
  const found = await ending({ reason: 'infra_error', state_kept: false, final: 'x' }, {})
  assert.equal(found.answer, null)
  assert.match(found.notes.join(), /submit it again/)
})

test('findEnding() explains every printed ending that was passed over', async () => {
  const found = await ending({}, { names: ['gone'], ignored: new Set(['in_context', 'unclosed']) })
  assert.equal(found.answer, null)
  assert.equal(found.notes.length, 3)
  assert.match(found.notes.join(), /occurs in the context.*never closes.*named gone/)
})

test('findEnding() leaves the words to the helper when it has explained a missing variable', async () => {
  const stderr = { ...silent, text: 'note: FINAL_VAR found no variable' }
  assert.deepEqual((await ending({ stderr }, { names: ['gone'] })).notes, [])
})
