/**
 * `npm run calibrate`: what every repair of every task earns, and whether that is as promised.
 *
 * `--task ID` (more than once) takes some of the tasks, `--seeds N` the seeds 1 to N, `--forgers` also tries every
 * forger on each of them, `--write` puts the figures into `python/tasks/calibration.json`.
 */

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { exitCodeOf, sentenceOf } from '../../src/cli/failure.ts'
import type { Task } from '../../src/environment/task-folder.ts'
import type { ExecutorDescription } from '../../src/executor/executor.ts'
import { tasksFolder } from '../../src/setup/paths.ts'
import { RealGrading } from '../fixtures/real-grading.ts'
import { type Calibrated, calibrate, objectionsTo, remarksOn } from './calibration.ts'
import { paidForgers, tryForgers } from './forgery.ts'
import { variantsOf } from './repairs.ts'

const FILE = join(tasksFolder, 'calibration.json')
const DEFAULT_SEEDS = 5
const FORGER_SEED = 1

const round = (value: number): number => Number(value.toFixed(4))

function tableOf(results: readonly Calibrated[]): string {
  const rows = results.map(({ name, kind, mean, min, max }) => {
    const figures = [mean, min, max].map(value => value.toFixed(4)).join(' | ')
    return `| ${name} | ${kind} | ${figures} |`
  })
  return ['| script | kind | mean | min | max |', '|---|---|---:|---:|---:|', ...rows].join('\n')
}

function write(
  taskId: string,
  results: readonly Calibrated[],
  seeds: number[],
  { python, torch }: ExecutorDescription,
) {
  const before = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {}
  const variants = Object.fromEntries(
    results.map(({ name, kind, mean, min, max }) => [
      name,
      { kind, mean: round(mean), min: round(min), max: round(max) },
    ]),
  )
  const after = { ...before, [taskId]: { python, torch, seeds: seeds.length, variants } }
  writeFileSync(FILE, `${JSON.stringify(after, null, 2)}\n`)
}

async function forgerObjections(grading: RealGrading, task: Task): Promise<string[]> {
  return paidForgers(await tryForgers(grading, task, FORGER_SEED, ['every', 'once', 'own']))
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      task: { type: 'string', multiple: true },
      seeds: { type: 'string', default: String(DEFAULT_SEEDS) },
      forgers: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  })
  const count = Number(values.seeds)
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`--seeds: expected a whole number from 1, got ${values.seeds}`)
  const seeds = Array.from({ length: count }, (_, index) => index + 1)
  const grading = await RealGrading.start()
  try {
    const tasks = values.task?.map(id => grading.task(id)) ?? grading.tasks
    let good = true
    for (const task of tasks) {
      const results = await calibrate(grading.grader, task, variantsOf(task), seeds)
      const objections = [...objectionsTo(results), ...(values.forgers ? await forgerObjections(grading, task) : [])]
      console.log(`\n## ${task.id}: ${task.name}\n\n${tableOf(results)}\n`)
      for (const remark of remarksOn(results)) console.log(`note: ${remark}`)
      for (const objection of objections) console.log(`NOT AS PROMISED: ${objection}`)
      if (values.write) write(task.id, results, seeds, grading.executor.describe())
      good &&= objections.length === 0
    }
    return good
  } finally {
    await grading.close()
  }
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(sentenceOf(error))
  process.exitCode = exitCodeOf(error)
}
