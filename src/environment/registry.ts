/** Every environment that the service offers. A new one is a line here. */

import type { Config } from '../config.ts'
import type { Executor } from '../executor/executor.ts'
import type { Environment } from './environment.ts'
import { Grader } from './grader.ts'
import { createMlDebugEnvironment } from './ml-debug.ts'
import { createReplEnvironment } from './repl.ts'
import { loadTasks } from './task-folder.ts'

export type RegistryOptions = {
  executor: Executor
  config: Config
  /** Where the tasks of ml_debug are, with what grades them. */
  tasksFolder: string
}

/**
 * Make all environments; the first is the default one.
 *
 * @throws {ServiceError} `invalid_config` naming the file and the field of a task that is not as it must be.
 */
export function createEnvironments({ executor, config, tasksFolder }: RegistryOptions): Environment[] {
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
    createMlDebugEnvironment(executor, {
      tasks: loadTasks(tasksFolder),
      grader: new Grader({
        executor,
        tasksFolder,
        salt: config.ML_DEBUG_SALT,
        gradings: config.ML_DEBUG_GRADINGS,
      }),
      maxTurns: config.ML_DEBUG_MAX_TURNS,
      toolTimeoutS: config.ML_DEBUG_TOOL_TIMEOUT_S,
      stepCeilingS: config.STEP_CEILING_S,
    }),
  ]
}
