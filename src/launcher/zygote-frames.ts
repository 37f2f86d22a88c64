/** The control frames between the service and a zygote: JSON lines on the zygote's stdin and stdout. */

import { z } from 'zod'

/** Must equal the version in `python/worker/protocol.py`; checked in `ready`. */
const protocol = z.int()

const path = z.string().nullable()

/** Files of the kernel that the service reads by itself; null where the host has no such counter. */
export const Accounting = z.strictObject({
  cpu: path.describe('CPU time of the tree: nanoseconds (v1) or a cpu.stat file (v2).'),
  memory_peak: path.describe('Highest memory of the tree in bytes.'),
  oom: path.describe('File with a line `oom_kill <count>`.'),
})
export type Accounting = z.infer<typeof Accounting>

export const ExitReport = z.strictObject({
  type: z.literal('exited'),
  worker_id: z.string(),
  code: z.int().nullable().describe('Exit code of the worker, null when a signal ended it or nobody saw it end.'),
  signal: z.int().nullable(),
  oom_kills: z.int(),
  cpu_ns: z.int().nullable(),
  peak_memory_bytes: z.int().nullable(),
})
export type ExitReport = z.infer<typeof ExitReport>

export const ZygoteFrame = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('ready'),
    protocol,
    pid: z.int(),
    python: z.string(),
    torch: z.string().nullable(),
    level: z.enum(['none', 'landlock', 'namespaces']),
    required: z.array(z.string()).describe('Attested facts that must be true at this level.'),
    notes: z.array(z.string()).describe('What the host does not give, one sentence each.'),
  }),
  z.strictObject({ type: z.literal('refused'), message: z.string() }),
  z.strictObject({
    type: z.literal('forked'),
    worker_id: z.string(),
    pid: z.int(),
    stdout: z.string().describe('Path of the FIFO that the worker writes descriptor 1 to.'),
    stderr: z.string(),
    accounting: Accounting,
  }),
  z.strictObject({ type: z.literal('fork_failed'), worker_id: z.string(), message: z.string() }),
  ExitReport,
])
export type ZygoteFrame = z.infer<typeof ZygoteFrame>
export type ReadyFrame = Extract<ZygoteFrame, { type: 'ready' }>
export type ForkedFrame = Extract<ZygoteFrame, { type: 'forked' }>

/** Ceilings that the kernel enforces on one episode. Units in the names. */
export type Limits = {
  memory_bytes: number
  processes: number
  disk_bytes: number
  inodes: number
  shm_bytes: number
  open_files: number
  threads: number
}

/** The first line a zygote reads. */
export type ConfigureFrame = {
  type: 'configure'
  protocol: number
  preload: 'base' | 'torch'
  level: 'best' | 'namespaces' | 'landlock' | 'none'
  min_level: 'namespaces' | 'landlock' | 'none'
  run_dir: string
  socket: string
  canary: string
  limits: Limits
}

export type ControlFrame =
  | ConfigureFrame
  | { type: 'fork'; worker_id: string; work: string | null }
  | { type: 'kill'; worker_id: string }
  | { type: 'stop' }
