/** The rules of the house. A rule that isn't checked is a wish. */

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import test from 'node:test'
import { repositoryRoot } from '../src/setup/paths.ts'
import { readRequirements } from '../src/setup/requirements.ts'
import { configurationTable, tableOnPage } from './house/configuration-page.ts'
import { findCycle, importsOf, localImportsOf } from './house/imports.ts'
import { objection } from './house/rooms.ts'
import { filesBelow, read, sourceFiles } from './house/tree.ts'

const MAX_LINES = 250
const FORBIDDEN_NAMES = ['utils', 'util', 'helpers', 'helper', 'common', 'lib', 'core', 'misc', 'shared']

const srcFiles = filesBelow('src', ['.ts'])
const importGraph = new Map(srcFiles.map(path => [path, localImportsOf(path, read(path))]))

/** Paths whose text matches. */
const filesWith = (paths: string[], pattern: RegExp): string[] => paths.filter(path => pattern.test(read(path)))

test('every import in src/ goes in a direction that its room allows', () => {
  const objections = [...importGraph].flatMap(([from, targets]) => targets.map(to => objection(from, to)))
  assert.deepEqual(
    objections.filter(text => text !== undefined),
    [],
  )
})

test('no file of src/ imports itself in a circle', () => {
  assert.equal(findCycle(importGraph)?.join(' -> '), undefined)
})

test('importsOf() sees every form of import', () => {
  const text = [
    "import a from './a.ts'",
    "import type {\n  B,\n} from './b.ts'",
    "export { c } from './c.ts'",
    "import './d.ts'",
    "const e = await import('./e.ts')",
    "import f, { g } from 'node:fs'",
  ].join('\n')
  assert.deepEqual(importsOf(text).sort(), ['./a.ts', './b.ts', './c.ts', './d.ts', './e.ts', 'node:fs'])
})

test('objection() and findCycle() object', () => {
  assert.match(objection('src/reward/answer.ts', 'src/executor/pool.ts') ?? '', /may not import executor/)
  assert.match(objection('src/attic/old.ts', 'src/errors.ts') ?? '', /not in the table/)
  assert.match(objection('src/api/body.ts', 'test/house/tree.ts') ?? '', /outside src/)
  assert.deepEqual(
    findCycle(
      new Map([
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['b']],
      ]),
    ),
    ['b', 'c', 'b'],
  )
})

test('every local import in src/ names a file', () => {
  const targets = [...importGraph].flatMap(([from, paths]) => paths.map(to => ({ from, to })))
  assert.deepEqual(
    targets.filter(({ to }) => !existsSync(join(repositoryRoot, to))),
    [],
  )
})

test(`no source file is longer than ${MAX_LINES} lines`, () => {
  const lengths = sourceFiles().map(path => ({ path, lines: read(path).trimEnd().split('\n').length }))
  assert.ok(lengths.length > 0)
  assert.deepEqual(
    lengths.filter(({ lines }) => lines > MAX_LINES),
    [],
  )
})

test('no file or folder has a name that says nothing', () => {
  const parts = (path: string) => path.split('/').map(part => part.replace(/\..*$/, ''))
  assert.deepEqual(
    sourceFiles().filter(path => parts(path).some(part => FORBIDDEN_NAMES.includes(part))),
    [],
  )
  assert.deepEqual(
    sourceFiles().filter(path => basename(path) === 'index.ts'),
    [],
  )
})

test('Python files have snake_case names', () => {
  const names = sourceFiles().filter(path => path.endsWith('.py'))
  assert.deepEqual(
    names.filter(path => !/^_{0,2}[a-z][a-z0-9_]*\.py$/.test(basename(path))),
    [],
  )
})

test('process.env is read in src/config.ts only', () => {
  const programs = [...srcFiles, ...filesBelow('bin', ['.js']), ...filesBelow('bench', ['.ts'])]
  assert.deepEqual(filesWith(programs, /process\.env\b(?!`)/), ['src/config.ts'])
})

test('one file at most imports openai', () => {
  const importers = srcFiles.filter(path => importsOf(read(path)).some(name => /^openai(\/|$)/.test(name)))
  assert.ok(importers.length <= 1, importers.join(', '))
})

test('reward imports neither Node nor packages', () => {
  const outside = filesBelow('src/reward', ['.ts']).flatMap(path =>
    importsOf(read(path)).filter(name => !name.startsWith('.')),
  )
  assert.deepEqual(outside, [])
})

test('PROTOCOL_VERSION is the same in TypeScript and Python', () => {
  const versionIn = (path: string) => /^(?:export const )?PROTOCOL_VERSION(?:: \w+)? = (\d+)/m.exec(read(path))?.[1]
  const version = versionIn('src/executor/protocol.ts')
  assert.notEqual(version, undefined)
  assert.equal(versionIn('python/worker/protocol.py'), version)
})

test('relative links in the documents lead to files', () => {
  const documents = filesBelow('', ['.md'])
  const links = documents.flatMap(path => {
    const targets = [...read(path).matchAll(/\]\(<?([^)>\s]+)>?\)/g)].map(match => match[1] ?? '')
    return targets
      .filter(target => !/^([a-z]+:|#)/.test(target))
      .map(target => ({ path, target: target.replace(/#.*$/, '') }))
  })
  const broken = links.filter(({ path, target }) => !existsSync(join(repositoryRoot, dirname(path), target)))
  assert.ok(documents.length > 0)
  assert.deepEqual(broken, [])
})

test('docs/configuration.md has the table that the schema gives (`npm run fix` renews it)', () => {
  assert.equal(tableOnPage(), configurationTable())
})

test('every dependency is pinned to one version', async () => {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(read('package.json'))
  const versions = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
  assert.deepEqual(
    versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version))),
    [],
  )
  for (const path of filesBelow('python', ['.txt'])) {
    const loose = (await readRequirements(path)).filter(line => !/^[\w.-]+(\[[\w,-]+\])?==[\w.+]+(\s*;.*)?$/.test(line))
    assert.deepEqual(loose, [], path)
  }
})
