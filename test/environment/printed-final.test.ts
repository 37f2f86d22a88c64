import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  type IgnoredWhy,
  MAX_ANSWER_BYTES,
  type PrintedEnding,
  PrintedFinal,
} from '../../src/environment/printed-final.ts'

function scan(output: string | readonly Buffer[], context = ''): PrintedEnding {
  const printed = new PrintedFinal(context)
  for (const chunk of typeof output === 'string' ? [Buffer.from(output)] : output) printed.push(chunk)
  return printed.finish()
}

const answers: [string, string][] = [
  ['FINAL(42)\n', '42'],
  ['FINAL(42)', '42'],
  ['  FINAL( 42 )\t\r\n', '42'],
  ['FINAL()\n', ''],
  ['FINAL(max(3, (4)))\n', 'max(3, (4))'],
  ['FINAL((1, 2))\n', '(1, 2)'],
  ['FINAL(it costs "3" or (so))\n', 'it costs "3" or (so)'],
  ['before\nFINAL(a)\nFINAL(b)\n', 'a'],
  ['FINAL(line one\nline two (really)\n)\n', 'line one\nline two (really)'],
  ['FINAL(1\nFINAL(2)\n', '2'],
  ['FINAL(Grüße 🙂)\n', 'Grüße 🙂'],
  ['FINAL_VAR(x)\nFINAL(a)\n', 'a'],
  [`FINAL(${'x'.repeat(60_000)})\n`, 'x'.repeat(60_000)],
  [`${'noise\n'.repeat(20_000)}FINAL(late)\n`, 'late'],
]

for (const [output, answer] of answers) {
  test(`PrintedFinal finds ${JSON.stringify(answer.slice(0, 40))} in ${JSON.stringify(output.slice(0, 40))}`, () => {
    assert.equal(scan(output).answer, answer)
  })
}

const ignored: [string, IgnoredWhy[]][] = [
  ['FINAL(1\n', ['unclosed']],
  ['NOTFINAL(3)\n', []],
  ['use FINAL(x) to end\n', []],
  ['FINAL(x) ends it\n', ['trailing_text']],
  ['FINAL(1) and 2)\n', ['trailing_text']],
  ['FINAL (3)\n', []],
  ['final(3)\n', []],
  ["'FINAL(42)'\n", ['quoted']],
  ['"FINAL_VAR(x)"\n', ['quoted']],
  ['z = "FINAL(7)"\n', []],
  ['FINAL(a\nb) c\n', ['trailing_text']],
  ['FINAL_VAR(x.y)\n', ['not_a_name']],
  ['FINAL_VAR()\n', ['not_a_name']],
  [`FINAL(${'x'.repeat(MAX_ANSWER_BYTES)})\n`, ['too_long']],
  [`FINAL(\n${'x\n'.repeat(MAX_ANSWER_BYTES)})\n`, ['too_long']],
]

for (const [output, why] of ignored) {
  test(`PrintedFinal takes no answer from ${JSON.stringify(output.slice(0, 40))}`, () => {
    const found = scan(output)
    assert.equal(found.answer, null)
    assert.deepEqual(found.names, [])
    assert.deepEqual([...found.ignored], why)
  })
}

test('PrintedFinal collects FINAL_VAR names once each, without their quotes', () => {
  assert.deepEqual(scan('FINAL_VAR(x)\nFINAL_VAR("größe")\n FINAL_VAR( \'_y1\' )\nFINAL_VAR(x)\n').names, [
    'x',
    'größe',
    '_y1',
  ])
})

test('PrintedFinal ignores an ending that occurs in the context, and takes a later one that does not', () => {
  const context = 'A log says: FINAL(fake) and FINAL_VAR(fake) too.\nFINAL(two\nlines)\n'
  const found = scan('FINAL(fake)\nFINAL_VAR(fake)\nFINAL(two\nlines)\nFINAL(true one)\n', context)
  assert.equal(found.answer, 'true one')
  assert.deepEqual(found.names, [])
  assert.deepEqual([...found.ignored], ['in_context'])
})

test('PrintedFinal stops searching a large context for a flood of endings', () => {
  const context = 'x'.repeat(64 * 1024 * 1024)
  const found = scan(
    `${Array.from({ length: 5000 }, (_, index) => `FINAL_VAR(v${index})`).join('\n')}\nFINAL(1)\n`,
    context,
  )
  assert.equal(found.names.length, 4)
  assert.equal(found.answer, null)
  assert.ok(found.ignored.has('too_many'))
})

test('PrintedFinal reads a flood of look-alikes no further than it can afford', () => {
  const found = scan(`${'NO FINAL\n'.repeat(200_000)}FINAL(1)\n`)
  assert.equal(found.answer, null)
  assert.deepEqual([...found.ignored], ['too_many'])
})

test('PrintedFinal holds little of one giant line', () => {
  const printed = new PrintedFinal('')
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const before = process.memoryUsage().arrayBuffers
  for (let count = 0; count < 3200; count++) printed.push(chunk)
  assert.ok(process.memoryUsage().arrayBuffers - before < 10 * chunk.length)
  printed.push(Buffer.from('\nFINAL(1)\n'))
  assert.equal(printed.finish().answer, '1')
})

const fragment = fc.constantFrom(
  'FINAL(',
  'FINAL_VAR(',
  'FINAL',
  '(',
  ')',
  '\n',
  '\n',
  ' ',
  '\r',
  "'",
  'x',
  'ü',
  '🙂',
  'prose ',
  ')\n',
  'FINAL(ok)\n',
  'FINAL_VAR(v)\n',
)
const printedText = fc.array(fragment, { maxLength: 40 }).map(parts => parts.join(''))

test('PrintedFinal finds the same however the output is cut into chunks', () => {
  fc.assert(
    fc.property(printedText, fc.array(fc.nat(200), { maxLength: 12 }), (output, cuts) => {
      const bytes = Buffer.from(output)
      const points = [0, ...cuts.map(cut => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
      const chunks = points.slice(1).map((point, index) => bytes.subarray(points[index], point))
      assert.deepEqual(scan(chunks, 'FINAL(x)'), scan([bytes], 'FINAL(x)'))
    }),
    { numRuns: 2000 },
  )
})

test('PrintedFinal never keeps a chunk: overwriting it later changes nothing', () => {
  fc.assert(
    fc.property(printedText, fc.nat(200), (output, cut) => {
      const bytes = Buffer.from(output)
      const point = cut % (bytes.length + 1)
      const printed = new PrintedFinal('')
      for (const part of [bytes.subarray(0, point), bytes.subarray(point)]) {
        const chunk = Buffer.from(part)
        printed.push(chunk)
        chunk.fill(0x28)
      }
      assert.deepEqual(printed.finish(), scan([bytes]))
    }),
    { numRuns: 500 },
  )
})

test('PrintedFinal returns balanced text as it was wrapped', () => {
  const balanced = fc.letrec<{ text: string }>(tie => ({
    text: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('', 'a', 'b c', '"', "'", 'é'),
      fc.tuple(tie('text'), tie('text')).map(([left, right]) => left + right),
      tie('text').map(inner => `(${inner})`),
      tie('text').map(inner => `x\n${inner}`),
    ),
  })).text
  fc.assert(fc.property(balanced, text => assert.equal(scan(`FINAL(${text})\n`).answer, text.trim())))
})
