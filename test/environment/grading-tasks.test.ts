import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { loadTasks, MAX_SCRIPT_CHARS } from '../../src/environment/task-folder.ts'
import { tasksFolder } from '../../src/setup/paths.ts'
import { RealGrading } from '../fixtures/real-grading.ts'
import { type Calibrated, calibrate, objectionsTo, remarksOn } from '../run/calibration.ts'
import { applyEdits, edgesOf, latticeOf, type Variant, variantsOf } from '../run/repairs.ts'

const SEEDS = [1, 2]
/** Of a lattice with more members than this, only the ends are judged on more than the first seed, which is two runs. */
const MANY = 8
const SUBMISSIONS = 32
const AT_ONCE = 8

const tasks = loadTasks(tasksFolder)

test('applyEdits() refuses what is not there once, and edits that overlap', () => {
  const edit = (find: string[], replace: string[] = []) => ({ find, replace })
  assert.equal(applyEdits('a\nb\nc', [edit(['c'], ['d', 'e']), edit(['a', 'b'], ['x'])], 'here'), 'x\nd\ne')
  assert.throws(() => applyEdits('a\nb', [edit(['c'])], 'here'), /here: expected once in the script, found 0 times/)
  assert.throws(() => applyEdits('a\na', [edit(['a'])], 'here'), /found 2 times/)
  assert.throws(() => applyEdits('a\nb\nc', [edit(['a', 'b']), edit(['b', 'c'])], 'here'), /two edits change the line/)
})

test('edgesOf() joins every two members of the lattice that differ by one fault', () => {
  const member = (name: string, kind: 'broken' | 'subset' | 'reference', fixed: string[]) => ({
    name,
    kind,
    fixed,
    code: '',
  })
  const lattice = [
    member('broken', 'broken', []),
    member('fix:a', 'subset', ['a']),
    member('fix:b', 'subset', ['b']),
    member('reference', 'reference', ['a', 'b']),
    member('alt:other', 'reference', ['a', 'b']),
  ]
  assert.deepEqual(
    edgesOf(lattice).map(([{ name: lower }, { name: upper }]) => `${lower} ${upper}`),
    ['broken fix:a', 'broken fix:b', 'fix:a reference', 'fix:b reference'],
  )
})

test('objectionsTo() names each promise that is not kept, remarksOn() each aim', () => {
  const result = (name: string, kind: Calibrated['kind'], mean: number, fixed: string[] = []): Calibrated => {
    return { name, kind, fixed, code: '', scores: [mean], mean, min: mean, max: mean }
  }
  const good = [result('broken', 'broken', 0.05), result('reference', 'reference', 0.99, ['a'])]
  assert.deepEqual(objectionsTo(good), [])
  assert.deepEqual(remarksOn(good), [])
  const words = (...others: Calibrated[]) => objectionsTo([...good, ...others]).join()
  assert.match(words(result('half', 'partial', 0.05)), /half has 0\.0500 .*not between/)
  assert.match(words(result('nonfix', 'no_effect', 0.08)), /nonfix .*not that of the broken script/)
  assert.match(words(result('alt', 'reference', 0.89)), /alt .*below 0\.9/)
  assert.match(objectionsTo([result('broken', 'broken', 0.26), ...good.slice(1)]).join(), /broken .*above 0\.25/)
  const flat = [result('broken', 'broken', 0.95), result('reference', 'reference', 0.95, ['a'])]
  assert.match(objectionsTo(flat).join(), /broken to reference rises by 0\.0000/)
  assert.match(
    remarksOn([result('broken', 'broken', 0.12), result('reference', 'reference', 0.93, ['a'])]).join(),
    /0\.12.*0\.93/,
  )
})

for (const task of tasks) {
  test(`the repairs of ${task.id} fit its script, and make scripts that clients can send`, () => {
    const variants = variantsOf(task)
    const names = variants.map(({ name }) => name)
    assert.equal(new Set(names).size, names.length)
    assert.equal(new Set(variants.map(({ code }) => code)).size, variants.length)
    for (const { name, code } of variants)
      assert.ok(code.length < MAX_SCRIPT_CHARS, `${name}: ${code.length} characters`)
    for (const kind of ['partial', 'no_effect', 'reference']) {
      assert.ok(
        variants.some(variant => variant.kind === kind),
        `${task.id} has no variant of the kind ${kind}`,
      )
    }
  })
}

describe('the tasks of the service', { concurrency: 1 }, () => {
  let grading: RealGrading
  before(async () => {
    grading = await RealGrading.start()
  })
  after(() => grading.close())

  for (const task of tasks) {
    test(`${task.id}: rewards rise with every repair, from at most 0.25 to at least 0.9`, async () => {
      const variants = variantsOf(task)
      const lattice = latticeOf(variants)
      // `npm run calibrate` judges all of the others.
      const others = (['partial', 'no_effect', 'reference'] as const).flatMap(wanted =>
        variants.filter(({ kind, name }) => kind === wanted && name !== 'reference').slice(0, 1),
      )
      const ends = lattice.filter(({ kind }) => kind !== 'subset')
      const judge = (some: Variant[], seeds: number[]) => calibrate(grading.grader, task, some, seeds)
      const judged =
        lattice.length <= MANY
          ? [await judge([...lattice, ...others], SEEDS)]
          : [await judge([...lattice, ...others], SEEDS.slice(0, 1)), await judge(ends, SEEDS.slice(1))]
      for (const results of judged) {
        const table = results.map(({ name, mean, min, max }) => `${name}: ${mean} (${min} to ${max})`).join('\n')
        assert.deepEqual(objectionsTo(results), [], table)
      }
    })

    test(`${task.id}: the broken script prints losses within the markers, and ends in time`, async () => {
      const { shown } = await grading.score(task.id, task.brokenCode)
      assert.equal(shown.reason, 'ok', shown.stderr)
      assert.match(shown.stdout, /^##METRICS_START##$[\s\S]*^LOSSES:\[.+\]$[\s\S]*^##METRICS_END##$/m)
    })
  }

  test('the same submission graded many times at once has one score', async () => {
    const [task] = tasks
    assert.ok(task !== undefined)
    const code = variantsOf(task).find(({ kind }) => kind === 'subset')?.code ?? task.brokenCode
    const scores = new Set<number>()
    let left = SUBMISSIONS
    const client = async () => {
      while (left-- > 0) scores.add((await grading.score(task.id, code, 5)).score)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    assert.equal(scores.size, 1, [...scores].join(', '))
  })
})
