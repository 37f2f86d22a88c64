/** A small environment for tests of the edge: its actions say how it should behave. */

import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { Environment, Episode, JsonObject, StepResult } from '../../src/environment/environment.ts'
import { dict, episodeIdField, laxBool, laxInt, seedField, text } from '../../src/environment/fields.ts'

const ProbeAction = z.strictObject({
  say: text().default('').describe('Echoed.'),
  count: laxInt({ min: 0, max: 10 }).default(1),
  loud: laxBool().default(false),
  mode: z.enum(['plain', 'throw', 'reject', 'nan', 'cycle', 'wait']).default('plain'),
  metadata: dict().default({}),
})
type ProbeAction = z.output<typeof ProbeAction>

const ProbeReset = z.object({
  seed: seedField(),
  episode_id: episodeIdField(),
  context: text().nullish(),
  fail: laxBool().optional(),
})

/** Gates that hold `wait` actions, so that a test decides when a step ends. */
export class Gate {
  #release: () => void = () => undefined
  readonly #opened: Promise<void>
  #entered: () => void = () => undefined
  /** Resolves when a step stands at the gate. */
  readonly reached: Promise<void>

  constructor() {
    this.#opened = new Promise(resolve => {
      this.#release = resolve
    })
    this.reached = new Promise(resolve => {
      this.#entered = resolve
    })
  }

  open(): void {
    this.#release()
  }

  wait(): Promise<void> {
    this.#entered()
    return this.#opened
  }
}

export type Probe = {
  environment: Environment
  /** Ids of episodes that were closed, in order. */
  closed: string[]
  /** Reset requests seen, in order. */
  resets: Record<string, unknown>[]
  /** Step limits seen, in order. */
  limits: (number | undefined)[]
  gate: Gate
}

/** @param name Path prefix of the environment. */
export function createProbe(name = 'probe'): Probe {
  const probe = {
    closed: [] as string[],
    resets: [] as Record<string, unknown>[],
    limits: [] as (number | undefined)[],
  }
  const gate = new Gate()
  const environment: Environment = {
    name,
    metadata: {
      name: `${name}_env`,
      description: 'Echoes what it is told.',
      readme_content: null,
      version: '0.1.0',
      author: null,
      documentation_url: null,
    },
    resetSchema: ProbeReset,
    actionSchema: ProbeAction,
    observationSchema: z.looseObject({ said: z.string() }),
    stateSchema: z.looseObject({ episode_id: z.string().nullable(), step_count: z.int() }),
    tools: [
      {
        name: 'say',
        description: 'Echo a text.',
        input: z.strictObject({ text: z.string(), mode: z.enum(['plain', 'throw', 'reject']).optional() }),
        toAction: input => ({ say: input.text, mode: input.mode ?? 'plain' }),
      },
    ],
    open: async request => {
      probe.resets.push(request)
      if (request.fail === true) throw new Error('reset failed on request')
      return createEpisode(request, gate, probe.closed, probe.limits)
    },
  }
  return { ...probe, environment, gate }
}

function createEpisode(
  request: Record<string, unknown>,
  gate: Gate,
  closed: string[],
  limits: (number | undefined)[],
): Episode {
  const id = typeof request.episode_id === 'string' ? request.episode_id : randomUUID()
  const context = typeof request.context === 'string' ? request.context : ''
  let steps = 0
  const result = (observation: JsonObject, reward: number | null): StepResult => ({
    observation,
    reward,
    done: false,
    metadata: { note: 'probe' },
  })
  return {
    id,
    initial: result(
      { said: '', context_length: context.length, seed: (request.seed as number | undefined) ?? null },
      null,
    ),
    step: (action, options) => {
      steps += 1
      limits.push(options.timeout_s)
      const { say, count, loud, mode } = action as ProbeAction
      if (mode === 'throw') throw new Error('thrown at once')
      if (mode === 'reject') return Promise.reject(new Error('rejected later'))
      if (mode === 'nan') return Promise.resolve(result({ said: say, value: Number.NaN, low: -Infinity }, 0))
      if (mode === 'cycle') {
        const loop: JsonObject = { said: say }
        loop.self = loop
        return Promise.resolve(result(loop, 0))
      }
      const answer = result({ said: loud ? say.toUpperCase() : say, count, steps }, 0.5)
      return mode === 'wait' ? gate.wait().then(() => answer) : Promise.resolve(answer)
    },
    state: () => ({ episode_id: id, step_count: steps, context }),
    close: () => closed.push(id),
  }
}
