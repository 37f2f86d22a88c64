/** Judges scripts that try to be paid without a repair. */

import { GradingBudget } from '../../src/environment/grading-attempts.ts'
import { runScript, SCRIPT_LIMITS, type ScriptLimits, type ScriptRun } from '../../src/environment/grading-script.ts'
import { withWorker } from '../../src/environment/grading-worker.ts'
import type { Task } from '../../src/environment/task-folder.ts'
import { type Forger, type ForgerFolder, forgersOf } from '../fixtures/forgers.ts'
import type { RealGrading } from '../fixtures/real-grading.ts'
import { variantsOf } from './repairs.ts'

/** For those that never end: far above what the honest script of a task takes. */
const ONCE_LIMITS: ScriptLimits = { cpu_s: 2, wall_s: 12 }
const BUDGET_MS = 600_000
const MAX_REPEATS = 3

/** What the broken script and the forgers earn on the same hidden data; `shown` where the run was worth a look. */
export type Forgery = { broken: number; forgers: (Forger & { score: number; shown: ScriptRun | null })[] }

/** Judge forgers and the broken script. @throws {Error} If the service failed to judge one. */
export async function tryForgers(
  grading: RealGrading,
  task: Task,
  seed: number,
  folders: ForgerFolder[],
): Promise<Forgery> {
  const request = (code: string) => ({ task, seed, code, budgetMs: BUDGET_MS })
  const judge = async (code: string) => ({ score: (await grading.grader.judge(request(code))).score, shown: null })
  const hurried = grading.graderWith({ limits: ONCE_LIMITS })
  const grade = async (code: string) => {
    let grade = await hurried.grade(request(code))
    // A script that wants all CPU time there is comes to its limit late on a machine that others use as well.
    for (let left = MAX_REPEATS; left > 0 && grade.kind === 'infra'; left--) grade = await hurried.grade(request(code))
    if (grade.kind === 'infra') throw new Error(`${task.id} was not graded: ${grade.message}`)
    return grade
  }
  const means = { referenceFiles: await referenceFiles(grading, task, seed) }
  const { score: broken } = await judge(task.brokenCode)
  const forgers = folders.flatMap(folder =>
    forgersOf(task, folder, means).map(async forger => {
      const { score, shown } = await (folder === 'once' ? grade(forger.code) : judge(forger.code))
      return { ...forger, score, shown }
    }),
  )
  return { broken, forgers: await Promise.all(forgers) }
}

/** The forgers that earn more than the broken script, in words. */
export function paidForgers({ broken, forgers }: Forgery): string[] {
  return forgers
    .filter(({ score }) => score > broken)
    .map(({ name, score }) => `${name} has ${score}, the broken script ${broken}`)
}

/** What the reference leaves on the data of the episode, base64 by name. */
async function referenceFiles(
  grading: RealGrading,
  task: Task,
  seed: number,
): Promise<Readonly<Record<string, string>>> {
  const reference = variantsOf(task).find(({ name }) => name === 'reference')
  if (reference === undefined) throw new Error(`${task.id} has no reference`)
  const files = await grading.grader.publicFiles(task, seed)
  const budget = new GradingBudget(BUDGET_MS)
  const result = await withWorker(grading.executor, { files, seed: null }, budget, worker =>
    runScript(worker, reference.code, task.outputs, budget, SCRIPT_LIMITS),
  )
  const missing = task.outputs.filter(name => !(name in result.files))
  if (missing.length > 0)
    throw new Error(`the reference of ${task.id} left no ${missing.join(', ')}: ${result.shown.stderr}`)
  return result.files
}
