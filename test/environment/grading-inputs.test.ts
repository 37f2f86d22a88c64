import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { readGradingFiles } from '../../src/environment/grading-files.ts'
import { GradingInputs } from '../../src/environment/grading-inputs.ts'
import { publicRun } from '../../src/environment/grading-seeds.ts'
import { RealGrading } from '../fixtures/real-grading.ts'

const SEED = 11

describe('what runs start with', { concurrency: 1 }, () => {
  let grading: RealGrading
  before(async () => {
    grading = await RealGrading.startFixtures()
  })
  after(() => grading.close())

  test('publicFiles() has data, settings, the module and the broken script; the next call has the same', async () => {
    const task = grading.task('slope')
    const files = await grading.grader.publicFiles(task, SEED)
    assert.deepEqual(Object.keys(files).sort(), ['config.json', 'data.npz', 'train.py', 'workbench.py'])
    const text = (name: string) => Buffer.from(files[name] ?? '', 'base64').toString()
    assert.equal(text('train.py'), task.brokenCode)
    const { init_seed } = publicRun('salt of the tests', 'slope', SEED)
    assert.deepEqual(JSON.parse(text('config.json')), { seed: init_seed })
    assert.deepEqual(await grading.grader.publicFiles(task, SEED), files)
    assert.notEqual((await grading.grader.publicFiles(task, SEED + 1))['data.npz'], files['data.npz'])
  })

  test('callers who ask for the same files at once share one making', async () => {
    const task = grading.task('faulty')
    const all = await Promise.all(Array.from({ length: 8 }, () => grading.grader.publicFiles(task, 77)))
    assert.equal(new Set(all.map(files => files['data.npz'])).size, 1)
    assert.equal((await grading.grader.publicFiles(task, 77))['data.npz'], all[0]?.['data.npz'])
  })

  test('GradingInputs remember no more bytes than they may', async () => {
    const task = grading.task('faulty')
    const evaluation = readGradingFiles(grading.folder).evaluations.get(task.id) ?? {}
    const inputs = new GradingInputs(grading.executor, 100)
    const make = async (seed: number) =>
      (await inputs.of(task.id, publicRun('', task.id, seed), evaluation))['data.npz']
    const first = await make(1)
    assert.equal(await make(1), first)
    for (const seed of [2, 3]) await make(seed)
    assert.notEqual(await make(1), first)
  })
})
