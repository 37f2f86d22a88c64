import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { countChanges, unifiedDiff } from '../../src/environment/unified-diff.ts'

const compare = (before: string, after: string) =>
  unifiedDiff({ name: 'original.py', text: before }, { name: 'proposed.py', text: after })

/** The same from the program itself, by its exit code and output. */
function reference(before: string, after: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'diff-'))
  try {
    writeFileSync(join(folder, 'a'), before)
    writeFileSync(join(folder, 'b'), after)
    const script = 'diff -u --label original.py --label proposed.py a b || [ $? -eq 1 ]'
    return execFileSync('sh', ['-c', script], { cwd: folder, encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const cases: [name: string, before: string, after: string, additions: number, deletions: number][] = [
  ['a changed line', 'a\nb\nc\n', 'a\nB\nc\n', 1, 1],
  ['equal texts', 'a\n', 'a\n', 0, 0],
  ['an empty original', '', 'a\nb\n', 2, 0],
  ['an emptied text', 'a\nb\n', '', 0, 2],
  ['a missing last newline', 'a\nb\n', 'a\nb', 1, 1],
  ['CRLF on one side', 'a\r\nb\r\n', 'a\nb\n', 2, 2],
  ['lines that start with ++ and --', 'x\n--i\n-- sql\n', 'x\n++i\n+++ b\n@@ -1 +1 @@\n', 3, 2],
  ['lines that start with a backslash', 'x\n\\ No\n', '\\ No newline\nx\n', 1, 1],
  ['two hunks', `a\n${'.\n'.repeat(40)}b\n`, `A\n${'.\n'.repeat(40)}B\n`, 2, 2],
  ['lone carriage returns and form feeds', 'a\rb\fc\n', 'a\rb\fd\n', 1, 1],
]
for (const [name, before, after, additions, deletions] of cases) {
  test(`unifiedDiff() gives what diff -u gives, and counts its hunks: ${name}`, async () => {
    const diff = await compare(before, after)
    assert.equal(diff.text, reference(before, after))
    assert.deepEqual([diff.additions, diff.deletions], [additions, deletions])
  })
}

test('unifiedDiff() takes a text with a NUL as a text', async () => {
  const diff = await compare('a\0\nb\n', 'a\0\nc\n')
  assert.match(diff.text, /^-b\n\+c$/m)
  assert.deepEqual([diff.additions, diff.deletions], [1, 1])
})

test('unifiedDiff() names both sides and leaves no folder behind', async () => {
  const folders = () => readdirSync(tmpdir()).filter(name => name.startsWith('forkyard-diff'))
  const before = folders()
  assert.match((await compare('a\n', 'b\n')).text, /^--- original\.py\n\+\+\+ proposed\.py\n@@ -1 \+1 @@\n/)
  assert.deepEqual(folders(), before)
})

test('unifiedDiff() compares large texts whole', async () => {
  const text = (word: string) => Array.from({ length: 20_000 }, (_, line) => `${word} ${line}\n`).join('')
  const diff = await compare(text('old'), text('new'))
  assert.deepEqual([diff.additions, diff.deletions], [20_000, 20_000])
})

test('unifiedDiff() says what is missing where there is no diff', async () => {
  const path = process.env.PATH
  process.env.PATH = '/nonexistent'
  try {
    await assert.rejects(compare('a', 'b'), { code: 'missing_tool', message: /diffutils/ })
  } finally {
    process.env.PATH = path
  }
})

test('countChanges() of nothing is nothing', () => assert.deepEqual(countChanges(''), { additions: 0, deletions: 0 }))
