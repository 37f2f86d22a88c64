import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { onLines } from '../../src/launcher/lines.ts'

/** Lines and errors that chunks give. */
function read(chunks: readonly Buffer[], maxLineBytes: number): { lines: string[]; errors: unknown[] } {
  const source = new PassThrough()
  const lines: string[] = []
  const errors: unknown[] = []
  onLines(
    source,
    maxLineBytes,
    line => lines.push(line.toString('latin1')),
    error => errors.push(error),
  )
  for (const chunk of chunks) source.emit('data', chunk)
  return { lines, errors }
}

test('onLines() gives the same lines however the bytes arrive', () => {
  const text = fc
    .array(fc.constantFrom('a', 'bc', '\n', '\r', '{"x":1}\n'), { maxLength: 30 })
    .map(parts => parts.join(''))
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 7 }), (whole, size) => {
      const chunks = whole.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      const { lines } = read(
        chunks.map(chunk => Buffer.from(chunk)),
        1000,
      )
      assert.deepEqual(lines, whole.split('\n').slice(0, -1))
    }),
  )
})

test('onLines() stops with protocol_violation at a line that is too long, and calls back no more', () => {
  const { lines, errors } = read([Buffer.from('ok\n'), Buffer.alloc(11, 0x78), Buffer.from('\nlate\n')], 10)
  assert.deepEqual(lines, ['ok'])
  assert.deepEqual(
    errors.map(error => (error as { code: string }).code),
    ['protocol_violation'],
  )
})
