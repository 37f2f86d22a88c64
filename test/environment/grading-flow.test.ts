import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { kill } from 'node:process'
import { after, before, describe, test } from 'node:test'
import type { ScriptLimits } from '../../src/environment/grading-script.ts'
import { hiddenRuns, publicRun } from '../../src/environment/grading-seeds.ts'
import { ServiceError } from '../../src/errors.ts'
import { RealGrading } from '../fixtures/real-grading.ts'
import { settled } from '../process-table.ts'

const SEED = 11
const BUDGET_MS = 45_000
/** The name that the evaluation of the task `faulty` gives its process while it measures. */
const MEASURING = 'measuring'

describe('Grader', { concurrency: 1 }, () => {
  let grading: RealGrading
  before(async () => {
    grading = await RealGrading.startFixtures()
  })
  after(() => grading.close())

  const broken = () => grading.task('slope').brokenCode
  const fixed = () => broken().replace('-(data', '(data')
  /** A submission that makes the evaluation of `faulty` do something. */
  const deed = (number: number) => grading.task('faulty').brokenCode.replace('DEED = 0', `DEED = ${number}`)

  test('grade() scores a repair above what it repairs, and shows the public run', async () => {
    const [before, after] = [await grading.score('slope', broken(), SEED), await grading.score('slope', fixed(), SEED)]
    assert.equal(after.score, 0.99)
    assert.ok(before.score < 0.5, String(before.score))
    assert.match(after.shown.stdout, /^##METRICS_START##\nLOSSES:\[-?\d\.\d+\]\n##METRICS_END##\n$/)
    assert.equal(after.printed, after.shown.stdout)
    const { elapsed_s, stdout, ...shown } = after.shown
    assert.deepEqual(shown, { stderr: '', exit_code: 0, timed_out: false, reason: 'ok' })
    assert.ok(elapsed_s > 0 && elapsed_s < 10)
  })

  test('the details say what was measured on each hidden run, and no seed', async () => {
    const { details, score } = await grading.score('slope', fixed(), SEED)
    assert.equal(details.score, score)
    const text = JSON.stringify(details)
    assert.match(text, /"error":\d/)
    assert.match(text, /"memory_growth_mib":\d/)
    const runs = [publicRun('salt of the tests', 'slope', SEED), ...hiddenRuns('salt of the tests', 'slope', SEED)]
    for (const { data_seed, init_seed } of runs) {
      assert.ok(!text.includes(String(data_seed)) && !text.includes(String(init_seed)))
    }
  })

  test('judge() comes to the verdict of grade() without showing a run', async () => {
    const verdict = await grading.grader.judge({
      task: grading.task('slope'),
      seed: SEED,
      code: broken(),
      budgetMs: BUDGET_MS,
    })
    assert.equal(verdict.score, (await grading.score('slope', broken(), SEED)).score)
    assert.equal(verdict.runs.length, 2)
    const failing = { task: grading.task('faulty'), seed: SEED, code: deed(2), budgetMs: BUDGET_MS }
    await assert.rejects(grading.grader.judge(failing), /could not measure: KeyError/)
  })

  test('a salt and a seed of their own give other hidden data', async () => {
    const code = broken()
    const slopes = (details: unknown) =>
      JSON.stringify(details)
        .match(/"error":[\d.]+/g)
        ?.slice(0, 2)
    const one = slopes((await grading.score('slope', code, SEED)).details)
    const other = await grading.graderWith({ salt: 'other' }).grade({
      task: grading.task('slope'),
      seed: SEED,
      code,
      budgetMs: BUDGET_MS,
    })
    assert.ok(other.kind === 'scored')
    assert.notDeepEqual(slopes(other.details), one)
    assert.notDeepEqual(slopes((await grading.score('slope', code, SEED + 1)).details), one)
  })

  test('generators that a script does not seed give the same score again', async () => {
    const code = `import random, numpy\n${broken()}`.replace(
      'slope = ',
      'slope = numpy.random.rand() * random.random() * ',
    )
    const [one, two] = [await grading.score('slope', code, SEED), await grading.score('slope', code, SEED)]
    assert.equal(one.score, two.score)
    assert.notEqual(one.score, 0.01)
  })

  const failures: [string, string, Partial<{ exit_code: number; reason: string }>, RegExp][] = [
    ['that raises', '1 / 0', { exit_code: 1, reason: 'exception' }, /slope\.safetensors: /],
    ['that is no Python', 'def (', { exit_code: 1, reason: 'exception' }, /slope\.safetensors: /],
    ['that is no text', '"\ud800"', { exit_code: 1, reason: 'exception' }, /slope\.safetensors: /],
    ['that exits', 'raise SystemExit(7)', { exit_code: 7, reason: 'exited' }, /slope\.safetensors: /],
    ['that a signal ends', 'import os; os.kill(os.getpid(), 9)', { exit_code: -9, reason: 'signal' }, /slope\.safeten/],
    ['that is empty', '', { exit_code: 0, reason: 'ok' }, /slope\.safetensors: /],
  ]
  for (const [what, code, expected, why] of failures) {
    test(`grade() gives a script ${what} 0.01 and says why`, async () => {
      const { score, shown, details } = await grading.score('slope', code)
      assert.equal(score, 0.01)
      assert.deepEqual({ exit_code: shown.exit_code, reason: shown.reason }, expected)
      assert.match(String(details.reason), why)
    })
  }

  test('what a script left counts, however it ended', async () => {
    const { score, shown } = await grading.score('slope', `${fixed()}\n1 / 0\n`)
    assert.equal(score, 0.99)
    assert.equal(shown.reason, 'exception')
  })

  const overruns: [string, string, ScriptLimits, RegExp][] = [
    ['sleeps past its limit', 'import time\ntime.sleep(60)', { cpu_s: 8, wall_s: 1.5 }, /ran longer than its 1\.5 s/],
    ['uses up its CPU time', 'while True: pass', { cpu_s: 1, wall_s: 16 }, /more than its 1 s of CPU time/],
  ]
  for (const [what, code, limits, why] of overruns) {
    test(`a script that ${what} earns 0.01, whatever it left before`, async () => {
      const grader = grading.graderWith({ limits })
      const task = grading.task('slope')
      const grade = await grader.grade({ task, seed: SEED, code: `${fixed()}\n${code}`, budgetMs: BUDGET_MS })
      assert.ok(grade.kind === 'scored')
      assert.equal(grade.score, 0.01)
      assert.deepEqual([grade.shown.timed_out, grade.shown.reason], [true, 'timeout'])
      assert.match(grade.shown.stdout, /LOSSES/)
      assert.match(String(grade.details.reason), why)
    })
  }

  test('grade() answers infra when the evaluation dies, raises or does not fit its rubric', async () => {
    for (const [number, words] of [
      [1, /could not measure: .*status 3/],
      [2, /could not measure: KeyError/],
      [3, /rubric of faulty .*no error/],
    ] as const) {
      const grade = await grading.grade('faulty', deed(number))
      assert.ok(grade.kind === 'infra')
      assert.match(grade.message, words)
    }
  })

  test('a grader worker that is killed in the middle is replaced, and the score is the same', async () => {
    const undisturbed = await grading.score('faulty', deed(0))
    const pending = grading.score('faulty', deed(4))
    const measuring = await settled(entries => entries.some(({ name }) => name === MEASURING))
    for (const { pid, name } of measuring) if (name === MEASURING) kill(pid, 'SIGKILL')
    assert.ok(measuring.some(({ name }) => name === MEASURING))
    assert.equal((await pending).score, undisturbed.score)
  })

  test('a script that its neighbours leave no CPU is not blamed for its time', async () => {
    const opening = Array.from({ length: 4 * availableParallelism() }, () => grading.openWorker())
    const neighbours = await Promise.all(opening)
    const busy = neighbours.map(worker => worker.run({ code: 'while True: pass', limit_ms: 30_000 }))
    const grader = grading.graderWith({ limits: { cpu_s: 8, wall_s: 1.5 } })
    const code = 'import time\nwhile time.process_time() < 3: pass'
    const grade = await grader.grade({ task: grading.task('slope'), seed: SEED, code, budgetMs: BUDGET_MS })
    for (const worker of neighbours) worker.close()
    await Promise.all(busy)
    assert.ok(grade.kind === 'infra')
    assert.match(grade.message, /got no CPU/)
  })

  test('a budget that is too small gives infra and leaves no slot taken', async () => {
    const grader = grading.graderWith({ gradings: 1 })
    const task = grading.task('slope')
    const code = `import time\ntime.sleep(30)\n${fixed()}`
    const grade = await grader.grade({ task, seed: SEED, code, budgetMs: 3_000 })
    assert.ok(grade.kind === 'infra')
    assert.match(grade.message, /^busy/)
    const next = await grader.grade({ task, seed: SEED, code: fixed(), budgetMs: BUDGET_MS })
    assert.ok(next.kind === 'scored')
  })

  test('a grading that waits in line past its budget gives infra, not a low score', async () => {
    const grader = grading.graderWith({ gradings: 1 })
    const task = grading.task('slope')
    const slow = grader.grade({ task, seed: SEED, code: `import time\ntime.sleep(2)\n${fixed()}`, budgetMs: BUDGET_MS })
    const hurried = await grader.grade({ task, seed: SEED, code: fixed(), budgetMs: 1_000 })
    assert.ok(hurried.kind === 'infra')
    assert.match(hurried.message, /^busy/)
    const first = await slow
    assert.ok(first.kind === 'scored')
    assert.equal(first.score, 0.99)
  })

  test('grading leaves no process behind', async () => {
    await grading.score('slope', fixed())
    const counts = () => grading.executor.describe().workers.busy
    await settled(() => counts() === 0)
    assert.equal(counts(), 0)
  })

  test('grade() and publicFiles() of a closed executor fail by name at once', async () => {
    const closing = await RealGrading.startFixtures({ FORKYARD_TORCH: 'none' })
    await closing.close()
    const grade = await closing.grade('slope', fixed())
    assert.ok(grade.kind === 'infra')
    assert.match(grade.message, /shutting down/)
    await assert.rejects(
      closing.grader.publicFiles(closing.task('slope'), 1),
      (error: unknown) => error instanceof ServiceError && error.code === 'shutting_down',
    )
  })
})

describe('Grader at level landlock', { concurrency: 1 }, () => {
  let grading: RealGrading
  before(async () => {
    grading = await RealGrading.startFixtures({ SANDBOX_LEVEL: 'landlock' })
  })
  after(() => grading.close())

  test('a repair earns what it earns at the strongest level', async () => {
    const fixed = grading.task('slope').brokenCode.replace('-(data', '(data')
    assert.equal((await grading.score('slope', fixed, SEED)).score, 0.99)
  })

  test('a script that ends its worker earns 0.01', async () => {
    const { score, shown } = await grading.score('slope', 'import os\nos.kill(os.getppid(), 9)', SEED)
    assert.deepEqual([score, shown.reason], [0.01, 'signal'])
  })
})
