/** Every environment variable, read once into one checked, frozen value. */

import { z } from 'zod'
import { ServiceError } from './errors.ts'

const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0', 'yes', 'no', 'on', 'off'])
    .transform(word => ['true', '1', 'yes', 'on'].includes(word))
    .default(fallback)
const whole = (low: number, high: number) => z.coerce.number().int().min(low).max(high)
const seconds = (low: number, high: number) => z.coerce.number().min(low).max(high)

/** A port to listen on and the environment at its root. */
export type Address = { port: number; environment: string }

/** `port=environment`, several with spaces or commas between. */
const addresses = () =>
  z.string().transform((text, context): Address[] => {
    const entries = text.split(/[\s,]+/).filter(entry => entry !== '')
    return entries.map(entry => {
      const [, port, environment = ''] = /^(\d{1,5})=(\w+)$/.exec(entry) ?? []
      if (port !== undefined && Number(port) <= 65_535) return { port: Number(port), environment }
      context.addIssue({ code: 'custom', message: `expected port=environment, such as 7860=ml_debug, got ${entry}` })
      return z.NEVER
    })
  })

const MIB = 1024 * 1024

export const ConfigSchema = z.object({
  HOST: z.string().default('127.0.0.1').describe('Address to listen on.'),
  PORT: whole(0, 65_535).default(8000).describe('Port to listen on; 0 takes a free one.'),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('warn')
    .describe('Least severe log line that is written.'),
  ENABLE_WEB_INTERFACE: flag(false).describe('Serve the OpenEnv web interface under /web.'),
  FORKYARD_MODE: z
    .string()
    .transform(word => word.toLowerCase())
    .pipe(z.enum(['simulation', 'production']))
    .default('simulation')
    .describe('production leaves out /reset, /step and /state over HTTP.'),

  FORKYARD_ENV: z.string().min(1).default('repl').describe('Environment served at the root as well as at its prefix.'),
  FORKYARD_LISTEN: addresses()
    .optional()
    .describe('Several addresses, as `8000=repl 7860=ml_debug`; wins over PORT and FORKYARD_ENV.'),
  FORKYARD_PYTHON: z
    .string()
    .min(1)
    .optional()
    .describe('An interpreter of the host; nothing is installed when it is set.'),
  FORKYARD_VENV: z.string().min(1).default('.venv').describe('Folder of the private Python environment.'),
  FORKYARD_TORCH: z
    .enum(['cpu', 'cuda', 'none'])
    .default('cpu')
    .describe('Which torch build setup installs and the zygote imports.'),
  FORKYARD_TORCH_INDEX: z
    .url()
    .optional()
    .describe('Wheel index that setup tries first for torch; unset, the CPU index of the PyTorch project on Linux.'),

  SANDBOX_LEVEL: z
    .enum(['best', 'namespaces', 'landlock', 'none'])
    .default('best')
    .describe('Isolation to use; best takes the strongest the host gives.'),
  SANDBOX_MIN_LEVEL: z
    .enum(['namespaces', 'landlock', 'none'])
    .default('landlock')
    .describe('Refuse to start below this.'),

  MAX_CONCURRENT_ENVS: whole(1, 100_000).default(256).describe('Sessions and HTTP episodes held at once.'),
  WARM_SPARES: whole(0, 256)
    .default(4)
    .describe('Workers forked and isolated ahead of demand, per preload set in use.'),
  WORKER_QUEUE_LIMIT: whole(0, 100_000).default(256).describe('Opens that may wait for a worker before queue_full.'),
  WORKER_QUEUE_TIMEOUT_S: seconds(0.1, 40).default(10).describe('Longest wait for a worker.'),

  STEP_TIMEOUT_S: seconds(0.05, 40).default(30).describe('Wall time of a step when the caller names none.'),
  STEP_CEILING_S: seconds(1, 55).default(45).describe('Nothing a step does may take longer than this, all in.'),
  STEP_GRACE_S: seconds(0.05, 10).default(1).describe('Time between the interrupt and the kill.'),
  STEP_THREADS: whole(1, 256).default(1).describe('torch threads of a worker; also scales the CPU time of a step.'),
  STEP_OUTPUT_LIMIT_MIB: whole(0, 1_000_000)
    .default(0)
    .describe('Bytes a step may print before it is killed; 0 drains without bound.'),

  EPISODE_MEMORY_MIB: whole(64, 1_000_000)
    .default(2048)
    .describe('Memory of an episode, on top of what the zygote shares.'),
  EPISODE_PROCESSES: whole(4, 100_000).default(128).describe('Processes and threads of an episode.'),
  EPISODE_DISK_MIB: whole(1, 1_000_000).default(256).describe('Work and tmp folders of an episode.'),
  EPISODE_INODES: whole(16, 10_000_000)
    .default(10_000)
    .describe('Files and folders in the work and tmp folders of an episode.'),
  EPISODE_SHM_MIB: whole(1, 1_000_000).default(256).describe('/dev/shm of an episode.'),
  EPISODE_OPEN_FILES: whole(32, 1_000_000).default(1024).describe('Descriptors that a process of an episode may hold.'),
  EPISODE_IDLE_S: seconds(0, 604_800).default(1800).describe('Close an episode nobody stepped for this long; 0 never.'),
  EPISODE_LIFETIME_S: seconds(0, 604_800).default(14_400).describe('Close an episode of this age; 0 never.'),
  SOCKET_PING_S: seconds(0.05, 3600)
    .default(20)
    .describe('Heartbeat of a WebSocket; a peer that misses one whole interval is gone.'),
  MAX_BODY_MIB: whole(1, 1024).default(128).describe('Largest request body and WebSocket frame accepted.'),

  REPL_CONTEXT: z.string().default('').describe('Variable `context` of an episode whose reset names none.'),
  REPL_TASK_PROMPT: z.string().default('').describe('Task prompt of an episode whose reset names none.'),
  REPL_MAX_ITERATIONS: whole(1, 1_000_000).default(30).describe('Steps of an episode.'),
  REPL_MAX_OUTPUT_LENGTH: whole(64, 10_000_000)
    .default(8192)
    .describe('Characters of stdout and of stderr kept per step.'),
  REPL_CONTEXT_PREVIEW_LENGTH: whole(0, 1_000_000)
    .default(500)
    .describe('Characters of the context shown in observations.'),
  REPL_RUN_LAST_STEP: flag(true).describe(
    'Run the step that reaches the limit; false ends without running it, as the original does.',
  ),

  ML_DEBUG_MAX_TURNS: whole(1, 1000).default(10).describe('Actions of an ml_debug episode.'),
  ML_DEBUG_TOOL_TIMEOUT_S: seconds(0.05, 40)
    .default(30)
    .describe('Wall time of an ml_debug action other than submit_fix; a caller can ask for less.'),
  ML_DEBUG_SALT: z
    .string()
    .min(1)
    .default('forkyard')
    .describe('Secret that the hidden seeds of ml_debug are made from; another one gives other data and rewards.'),
  ML_DEBUG_GRADINGS: whole(0, 1024)
    .default(0)
    .describe('Submitted scripts that run at once; 0 takes the number of cores.'),

  ENV_README_PATH: z
    .string()
    .optional()
    .describe('Markdown file that the web interface shows; unset, a built-in text.'),
})

export type Config = Readonly<z.output<typeof ConfigSchema>>

/**
 * Parse the environment.
 *
 * @param environment `process.env`, or what a test gives. Empty strings count as unset.
 * @param overrides Values that win over the environment: what command-line flags say. An empty one unsets.
 * @throws {ServiceError} `invalid_config` naming each bad variable and what was expected.
 */
export function readConfig(
  environment: NodeJS.ProcessEnv = process.env,
  overrides: Record<string, string | undefined> = {},
): Config {
  const flags = Object.entries(overrides).filter(([, value]) => value !== undefined)
  const all = { ...environment, ...Object.fromEntries(flags) }
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== ''))
  const parsed = ConfigSchema.safeParse(given)
  if (!parsed.success) {
    const lines = parsed.error.issues.map(issue => `${issue.path.join('.')}: ${issue.message}`)
    throw new ServiceError('invalid_config', `invalid configuration: ${lines.join('; ')}`)
  }
  return Object.freeze(parsed.data)
}

/** Bytes in a setting given in MiB. */
export const mib = (count: number): number => count * MIB
