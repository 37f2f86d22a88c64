import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { dirSync } from 'tmp-promise'
import { loadTasks } from '../../src/environment/task-folder.ts'
import { ServiceError } from '../../src/errors.ts'
import { tasksFolder } from '../../src/setup/paths.ts'

const LEAF = { ramp: { measure: 'acc' }, from: 0.5, to: 0.7 }
const RECORD = {
  id: 'task1',
  name: 'Broken training loop',
  difficulty: 'easy',
  outputs: ['weights.safetensors'],
  rubric: { moved: LEAF, learned: LEAF, credits: { skill: { weight: 1, value: LEAF, shows: 'accuracy' } } },
}
const TEXTS: Record<string, string> = {
  'description.md': '# Broken training loop\n\nThe loss jumps.\n',
  'broken.py': 'import workbench\n',
  'evaluation.py': 'def measure(run, files): ...\n',
}

/** Make a folder with one task in it, remove it after the test, and load it. */
function load(record: unknown, texts: Record<string, string | null> = {}, folderName = 'task1') {
  using folder = temporaryFolder()
  addTask(folder.path, folderName, record, texts)
  return loadTasks(folder.path)
}

function temporaryFolder(): { path: string } & Disposable {
  const { name, removeCallback } = dirSync({ unsafeCleanup: true })
  return { path: name, [Symbol.dispose]: removeCallback }
}

function addTask(folder: string, name: string, record: unknown, texts: Record<string, string | null> = {}): void {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, 'task.json'), typeof record === 'string' ? record : JSON.stringify(record))
  for (const [file, text] of Object.entries({ ...TEXTS, ...texts })) {
    if (text !== null) writeFileSync(join(folder, name, file), text)
  }
}

/** The record with one part of its rubric replaced. */
const withRubric = (part: Record<string, unknown>) => ({ ...RECORD, rubric: { ...RECORD.rubric, ...part } })
const withCredit = (value: unknown, weight = 1) =>
  withRubric({ credits: { skill: { weight, value, shows: 'accuracy' } } })

test('loadTasks() gives the texts and the record of a folder', () => {
  const [task] = load(RECORD)
  assert.deepEqual(task, {
    ...RECORD,
    description: '# Broken training loop\n\nThe loss jumps.',
    brokenCode: 'import workbench\n',
  })
})

test('loadTasks() passes folders without a task.json by, and sorts by number', () => {
  using folder = temporaryFolder()
  for (const id of ['task10', 'task2']) addTask(folder.path, id, { ...RECORD, id })
  mkdirSync(join(folder.path, 'grading'))
  writeFileSync(join(folder.path, 'workbench.py'), '')
  assert.deepEqual(
    loadTasks(folder.path).map(({ id }) => id),
    ['task2', 'task10'],
  )
})

test('loadTasks() takes every kind of formula', () => {
  const value = {
    product: [
      { mean: { worse: LEAF } },
      {
        sum: [
          { weight: 0.5, of: LEAF },
          { weight: 0.5, of: { measure: 'nll' } },
        ],
      },
    ],
  }
  assert.deepEqual(load(withCredit(value))[0]?.rubric.credits.skill?.value, value)
})

const refusals: [string, unknown, RegExp][] = [
  ['text that is no JSON', '{"id": ', /task1\/task\.json: expected JSON/],
  ['an unknown key', { ...RECORD, hint: 'lr' }, /task\.json: .*"hint"/],
  [
    'an id that is not the name of the folder',
    { ...RECORD, id: 'task2' },
    /id: expected the name of the folder, task1/,
  ],
  ['an unknown difficulty', { ...RECORD, difficulty: 'fiendish' }, /difficulty: .*"easy"/],
  ['no output', { ...RECORD, outputs: [] }, /outputs: /],
  ['an output in another folder', { ...RECORD, outputs: ['../weights'] }, /outputs\.0: expected the plain name/],
  ['a hidden output', { ...RECORD, outputs: ['.weights'] }, /outputs\.0: expected the plain name/],
  ['an output twice', { ...RECORD, outputs: ['a', 'a'] }, /outputs: expected each name once/],
  ['weights that do not sum to 1', withCredit(LEAF, 0.9), /rubric\.credits: expected weights that sum to 1/],
  ['a weight of 0', withCredit(LEAF, 0), /rubric\.credits\.skill\.weight: /],
  ['a formula of no kind', withCredit({ slope: LEAF }), /rubric\.credits\.skill\.value: expected a formula: .*ramp/],
  ['a formula that is no object', withRubric({ moved: 1 }), /rubric\.moved: expected a formula/],
  ['a ramp without an end', withCredit({ ramp: LEAF, from: 1 }), /rubric\.credits\.skill\.value\.to: /],
  ['a ramp of no length', withCredit({ ramp: LEAF, from: 1, to: 1 }), /value\.to: expected from and to to differ/],
  ['a key that a formula lacks', withCredit({ ...LEAF, until: 1 }), /skill\.value: .*"until"/],
  [
    'a fault deep in a formula',
    withCredit({ product: [LEAF, { mean: { measure: 3 } }] }),
    /value\.product\.1\.mean\.measure: /,
  ],
  [
    'a sum above 1',
    withCredit({ sum: [{ weight: 1.5, of: LEAF }] }),
    /value\.sum: expected weights that sum to at most 1/,
  ],
  ['an empty product', withCredit({ product: [] }), /skill\.value\.product: /],
]
for (const [what, record, expected] of refusals) {
  test(`loadTasks() refuses ${what} and names the field`, () => {
    assert.throws(
      () => load(record),
      (error: unknown) =>
        error instanceof ServiceError && error.code === 'invalid_config' && expected.test(error.message),
    )
  })
}

for (const file of Object.keys(TEXTS)) {
  test(`loadTasks() refuses a task without ${file}, or with an empty one`, () => {
    const expected = new RegExp(`task1/${file.replace('.', '\\.')}: expected`)
    assert.throws(() => load(RECORD, { [file]: null }), expected)
    assert.throws(() => load(RECORD, { [file]: ' \n' }), expected)
  })
}

test('loadTasks() refuses a broken script that clients would cut', () => {
  assert.throws(() => load(RECORD, { 'broken.py': '#'.repeat(8_000) }), /broken\.py: expected fewer than 8000 char/)
  assert.equal(load(RECORD, { 'broken.py': '#'.repeat(7_999) }).length, 1)
})

test('loadTasks() refuses a folder without tasks', () => {
  using folder = temporaryFolder()
  assert.throws(() => loadTasks(folder.path), /expected a folder with a task\.json/)
})

test('the tasks of the repository load, and their texts do not name the files that stay on the server', () => {
  const tasks = loadTasks(tasksFolder)
  assert.ok(tasks.length > 0)
  for (const { description, brokenCode } of tasks) {
    assert.doesNotMatch(description + brokenCode, /repairs\.json|evaluation\.py/)
    assert.match(brokenCode, /^import workbench$/m)
  }
})
