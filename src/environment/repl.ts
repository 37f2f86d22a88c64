/** The REPL environment: a model writes Python, cell after cell, until it gives a final answer. */

import { z } from 'zod'
import type { Executor } from '../executor/executor.ts'
import type { Environment, Episode, EpisodeTool } from './environment.ts'
import { ReplEpisode, type ReplLimits } from './repl-episode.ts'
import { type ReplDefaults, readReplReset } from './repl-reset.ts'
import { ReplAction, ReplObservation, ReplReset, ReplState } from './repl-schemas.ts'
import { answerSubcall, SUBCALL_NAMES } from './subcalls.ts'

export type ReplSettings = ReplDefaults & ReplLimits

const TOOLS: EpisodeTool[] = [
  {
    name: 'execute',
    description:
      'Run Python code in the episode. Variables persist between calls; the value of a last expression is printed. ' +
      'Call FINAL(value) in the code to end the episode with an answer.',
    input: z.object({ code: z.string().describe('Python code to run.') }),
    toAction: ({ code }) => ({ code }),
  },
  {
    name: 'submit_final_answer',
    description: 'End the episode with a final answer.',
    input: z.object({ answer: z.string().describe('The final answer.') }),
    toAction: ({ answer }) => ({ is_final: true, final_answer: answer }),
  },
]

/** Make the environment whose episodes run in workers of `executor`. */
export function createReplEnvironment(executor: Executor, settings: ReplSettings): Environment {
  return {
    name: 'repl',
    metadata: {
      name: 'repl_env',
      description: 'Python REPL for recursive language models: real CPython, one isolated process per episode',
      readme_content: null,
      version: '0.1.0',
      author: null,
      documentation_url: null,
    },
    resetSchema: ReplReset,
    actionSchema: ReplAction,
    observationSchema: ReplObservation,
    stateSchema: ReplState,
    tools: TOOLS,
    open: request => openEpisode(executor, settings, request),
  }
}

async function openEpisode(
  executor: Executor,
  settings: ReplSettings,
  request: Record<string, unknown>,
): Promise<Episode> {
  const start = readReplReset(request, settings)
  const worker = await executor.open({
    preload: executor.describe().preload.includes('torch') ? 'torch' : 'base',
    variables: start.context === '' ? {} : { context: start.context },
    files: {},
    endings: true,
    call_helpers: [...SUBCALL_NAMES],
    seed: start.seed,
    onCall: answerSubcall,
  })
  return new ReplEpisode(start, worker, settings)
}
