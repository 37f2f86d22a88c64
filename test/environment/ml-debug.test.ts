/** Episodes of ml_debug in real workers with real torch; one zygote serves all groups, because importing torch takes seconds. */

import { after, before, suite } from 'node:test'
import { type OpenMlDebug, RealMlDebug } from '../fixtures/real-ml-debug.ts'
import { stateTests } from './ml-debug-state.ts'
import { toolTests } from './ml-debug-tools.ts'
import { turnTests } from './ml-debug-turns.ts'

suite('ml_debug', () => {
  let real: RealMlDebug
  before(async () => {
    real = await RealMlDebug.start()
  })
  after(() => real.close())

  /** Open an episode of the first task. */
  const open = (reset: Record<string, unknown> = {}, overrides: Record<string, string> = {}): Promise<OpenMlDebug> =>
    real.open({ seed: 1, ...reset }, overrides)

  suite('tools', () => toolTests(open))
  suite('state', () => stateTests(open, () => real.executor.describe().workers.busy))
  suite('turns', () => turnTests(open))
})
