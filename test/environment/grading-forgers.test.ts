import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { loadTasks } from '../../src/environment/task-folder.ts'
import { measureNames } from '../../src/reward/task-rubric.ts'
import { tasksFolder } from '../../src/setup/paths.ts'
import { inStranger } from '../fixtures/forgers.ts'
import { RealGrading } from '../fixtures/real-grading.ts'
import { paidForgers, tryForgers } from '../run/forgery.ts'
import { variantsOf } from '../run/repairs.ts'

const SEED = 3
const BUDGET_MS = 120_000
/** Of those tried once: scripts that leave nothing that can be read, or that a limit or their own deed ends. */
const NEVER_VALID = [
  'deep_header',
  'folders',
  'fork_bomb',
  'infinite_weights',
  'kills_its_parent',
  'large_files',
  'links_to_results',
  'memory_limit',
  'overlapping_tensors',
  'pipes',
  'print_and_exit',
  'renamed_tensors',
  'sleeping',
  'spinning',
  'stops_its_parent',
  'symbolic_links',
  'system_exit',
  'transposed_tensors',
]
/** Of those tried once: scripts that do the work of the broken one, and then something that must change nothing. */
const NEVER_MATTERS = [
  'descriptors',
  'files_for_the_grader',
  'floods',
  'looks_for_the_grader',
  'other_data',
  'patched_clock',
  'replaced_print',
  'writes_to_its_parent',
]

const tasks = loadTasks(tasksFolder)

describe('scripts that want to be paid without a repair', { concurrency: 1 }, () => {
  let grading: RealGrading
  before(async () => {
    grading = await RealGrading.start({ EPISODE_MEMORY_MIB: '1024' })
  })
  after(() => grading.close())

  test('those that turn against the service earn no more than the broken script', async () => {
    const [task] = tasks
    assert.ok(task !== undefined)
    const forgery = await tryForgers(grading, task, SEED, ['once'])
    assert.deepEqual(paidForgers(forgery), [])
    const named = (name: string) => {
      const forger = forgery.forgers.find(each => each.name === name)
      assert.ok(forger !== undefined, name)
      return { score: forger.score, reason: forger.shown?.reason, stdout: forger.shown?.stdout ?? '' }
    }
    for (const name of NEVER_VALID) assert.equal(named(name).score, 0.01, name)
    for (const name of NEVER_MATTERS) assert.equal(named(name).score, forgery.broken, name)
    assert.match(named('looks_for_the_grader').stdout, /^FOUND: \[\]$/m)
    assert.match(named('writes_to_its_parent').stdout, /^OPENED: \[\]$/m)
    for (const name of ['sleeping', 'spinning', 'stops_its_parent', 'fork_bomb']) {
      assert.equal(named(name).reason, 'timeout', name)
    }
    assert.equal(named('memory_limit').reason, 'memory_limit')
  })

  for (const task of tasks) {
    test(`${task.id}: those that turn against the evaluation earn no more than the broken script`, async () => {
      const forgery = await tryForgers(grading, task, SEED, ['every', 'own'])
      assert.ok(forgery.forgers.length > 10)
      assert.deepEqual(paidForgers(forgery), [])
    })
  }

  for (const task of tasks) {
    const credits = Object.values(task.rubric.credits).map(({ value }) => value)
    if (!credits.flatMap(measureNames).includes('memory_growth_mib')) continue
    test(`${task.id}: memory used by a process that nobody waits for counts`, async () => {
      const judge = (code: string) => grading.grader.judge({ task, seed: SEED, code, budgetMs: BUDGET_MS })
      const faults = Math.max(...variantsOf(task).map(({ fixed }) => fixed.length))
      const nearly = variantsOf(task).filter(({ kind, fixed }) => kind === 'subset' && fixed.length === faults - 1)
      const verdicts = await Promise.all(nearly.map(async ({ code }) => ({ code, ...(await judge(code)) })))
      const leaking = verdicts.filter(({ runs }) => runs.every(({ credits }) => credits.memory?.value === 0))
      assert.equal(leaking.length, 1)
      for (const { code, score } of leaking) assert.equal((await judge(inStranger(code))).score, score)
    })
  }
})
