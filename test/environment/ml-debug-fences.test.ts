import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripFences } from '../../src/environment/ml-debug-fences.ts'

const cases: [name: string, text: string, code: string][] = [
  ['a fenced block', '```python\nx = 1\n```', 'x = 1\n'],
  ['a block without a language', '```\nx = 1\n```\n', 'x = 1\n'],
  ['prose on both sides', "Here's the fix:\n\n```py\nx = 1\ny = 2\n```\nThat's it.", 'x = 1\ny = 2\n'],
  ['two blocks, of which the first counts', '```\na\n```\nor\n```\nb\n```', 'a\n'],
  ['a block that is never closed', '```python\nx = 1\nprint(x)', 'x = 1\nprint(x)'],
  ['a fence behind the last character', '```python\nx = 1```', 'x = 1\n'],
  ['tildes', '~~~python\nx = 1\n~~~', 'x = 1\n'],
  ['tildes around backticks', '~~~\n"""\n```\n"""\n~~~', '"""\n```\n"""\n'],
  ['a longer fence around a shorter one', '````\n```\nx\n```\n````', '```\nx\n```\n'],
  ['a fence in a string of the block', '```python\ns = """\n```\n"""\nx = 1\n```\nbye', 's = """\n```\n"""\nx = 1\n'],
  ['quotes that never match', "```python\ns = \"'''\"\nx = 1\n```\nbye", "s = \"'''\"\nx = 1\n"],
  ['Windows line ends', '```python\r\nx = 1\r\n```\r\n', 'x = 1\r\n'],
  ['an empty block', '```python\n```', ''],
]
for (const [name, text, code] of cases) {
  test(`stripFences() takes the code out of ${name}`, () => assert.equal(stripFences(text), code))
}

const plain: [name: string, code: string][] = [
  ['plain code', 'x = 1\nprint(x)\n'],
  ['code with a fence in a string', 'DOC = """\n```python\nx\n```\n"""\nprint(DOC)\n'],
  ['code that inverts three times', 'y = 5\n~~~y\n'],
  ['inline backticks', '# use ```x``` here\nx = 1\n'],
  ['no text', ''],
]
for (const [name, code] of plain) {
  test(`stripFences() leaves ${name} untouched`, () => assert.equal(stripFences(code), code))
}
