/** The ml_debug environment: an agent finds out what is wrong with a training script and submits a repaired one. */

import { ServiceError } from '../errors.ts'
import type { Executor } from '../executor/executor.ts'
import type { Environment, Episode } from './environment.ts'
import type { Grader } from './grader.ts'
import { episodeTools } from './ml-debug-catalogue.ts'
import { MlDebugEpisode, type MlDebugLimits } from './ml-debug-episode.ts'
import { strayResult } from './ml-debug-observation.ts'
import { createRoutes } from './ml-debug-routes.ts'
import { createResetSchema, MlDebugAction, MlDebugObservation, MlDebugState } from './ml-debug-schemas.ts'
import { createTaskCatalogue } from './ml-debug-splits.ts'
import { type MlDebugStart, readStart } from './ml-debug-start.ts'
import { MlDebugWorker } from './ml-debug-worker.ts'
import type { Task } from './task-folder.ts'

export type MlDebugSettings = MlDebugLimits & {
  /** At least one; the first is the default. */
  tasks: readonly Task[]
  grader: Grader
}

const VERSION = '0.1.0'

/** Make the environment whose episodes run in workers of `executor`. */
export function createMlDebugEnvironment(executor: Executor, settings: MlDebugSettings): Environment {
  const { tasks, toolTimeoutS } = settings
  const episodes = new Map<string, Episode>()
  const resetSchema = createResetSchema(tasks.map(({ id }) => id))
  const open = async (request: Record<string, unknown>): Promise<Episode> => {
    const start = readStart(resetSchema.parse(request), tasks)
    const worker = await openWorker(executor, settings, start)
    const episode: Episode = new MlDebugEpisode(start, worker, settings.grader, settings, () => {
      // Two live episodes may have one id; the later one has it.
      if (episodes.get(start.episodeId) === episode) episodes.delete(start.episodeId)
    })
    episodes.set(episode.id, episode)
    return episode
  }
  return {
    name: 'ml_debug',
    metadata: {
      name: 'whipstudio',
      description:
        'Debugging of PyTorch training scripts: six broken scripts, five tools to look with, rewards that are measured',
      readme_content: null,
      version: VERSION,
      author: null,
      documentation_url: null,
    },
    resetSchema,
    actionSchema: MlDebugAction,
    observationSchema: MlDebugObservation,
    stateSchema: MlDebugState,
    tools: episodeTools(toolTimeoutS),
    routes: createRoutes({ ...settings, episodes, version: VERSION, requireTorch: () => requireTorch(executor) }),
    tasks: createTaskCatalogue(tasks),
    answerStray: (action, id) => strayResult(MlDebugAction.parse(action).action_type, id, tasks[0]?.id ?? ''),
    open,
  }
}

async function openWorker(
  executor: Executor,
  { grader, stepCeilingS }: MlDebugSettings,
  { task, seed }: MlDebugStart,
): Promise<MlDebugWorker> {
  requireTorch(executor)
  const worker = await executor.open({
    preload: 'torch',
    variables: {},
    files: await grader.publicFiles(task, seed),
    endings: false,
    call_helpers: [],
    seed,
    onCall: async ({ name }) => {
      throw new ServiceError('invalid_request', `there is no call named ${name}`)
    },
  })
  return new MlDebugWorker(worker, stepCeilingS * 1000)
}

/** @throws {ServiceError} `missing_tool` where workers don't have torch from the start: importing it would use up their time. */
function requireTorch(executor: Executor): void {
  const { torch, preload } = executor.describe()
  if (torch !== null && preload.includes('torch')) return
  throw new ServiceError(
    'missing_tool',
    'ml_debug needs torch, and this service runs without it: set FORKYARD_TORCH to cpu or cuda and run `npm run setup`',
  )
}
