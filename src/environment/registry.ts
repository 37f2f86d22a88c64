/** Every environment that the service offers. A new one is a line here. */

import type { Config } from '../config.ts'
import type { Executor } from '../executor/executor.ts'
import type { Environment } from './environment.ts'
import { createReplEnvironment } from './repl.ts'

/** Make all environments; the first is the default one. */
export function createEnvironments({ executor, config }: { executor: Executor; config: Config }): Environment[] {
  return [
    createReplEnvironment(executor, {
      context: config.REPL_CONTEXT,
      taskPrompt: config.REPL_TASK_PROMPT,
      previewChars: config.REPL_CONTEXT_PREVIEW_LENGTH,
      maxIterations: config.REPL_MAX_ITERATIONS,
      runLastStep: config.REPL_RUN_LAST_STEP,
      stepTimeoutS: config.STEP_TIMEOUT_S,
      stepCeilingS: config.STEP_CEILING_S,
    }),
  ]
}
