/**
 * The face of the executor: what an environment may ask of a sandboxed worker.
 *
 * An environment opens one `EpisodeWorker` per episode and runs cells in it.
 * The worker process behind it may die and be replaced; the `EpisodeWorker`
 * stays, and every outcome says whether the Python state did.
 */

import type { ReadyFrame } from '../launcher/zygote-frames.ts'

/** Why a cell ended: one closed word, decided by the service and the kernel. */
export const REASONS = [
  'ok',
  'exception',
  'timeout',
  'memory_limit',
  'process_limit',
  'output_limit',
  'disk_limit',
  'exited',
  'signal',
  'protocol_violation',
  'infra_error',
] as const
export type Reason = (typeof REASONS)[number]

/** Which packages the worker's zygote has imported before the fork. */
export type PreloadSet = 'base' | 'torch'

/** What one cell used, measured by the kernel and the service's own clock. */
export type Usage = {
  /** Wall time from the run frame to the outcome, in milliseconds. */
  wall_ms: number
  /** CPU time of the whole process tree, in milliseconds; null where the host has no counter. */
  cpu_ms: number | null
  /** Highest memory of the tree so far in this episode, in bytes; null where the host has no counter. */
  peak_memory_bytes: number | null
  /** Time the cell waited for answers to calls (`llm_query`), in milliseconds; not charged to the deadline. */
  subcall_wait_ms: number
  /** Time spent waiting for a worker before the cell could start, in milliseconds; not charged. */
  queued_ms: number
}

/** Text a cell wrote to one descriptor: head and tail kept, true totals always. */
export type CapturedText = {
  text: string
  /** Unicode characters written, including those cut out of `text`. */
  total_chars: number
  /** Bytes written to the descriptor. */
  total_bytes: number
  truncated: boolean
}

/** The `answer` variable after a cell: null unless it is a dict. */
export type AnswerFact = { ready: boolean; content: string } | null

export type CellOutcome = {
  reason: Reason
  /** False when the process was lost: the next cell sees the namespace that opening made. */
  state_kept: boolean
  /** Why the state of earlier cells was gone before this one began; null when it was not. */
  restarted: string | null
  stdout: CapturedText
  stderr: CapturedText
  /** `<Type>: <message>` on the first line, then the agent's own frames; null when the cell ran to its end. */
  exception: string | null
  /** Names the cell bound or rebound, to a bounded repr of their values. */
  locals: Record<string, string>
  /** Public names in the namespace, sorted. */
  variables: string[]
  /** First value handed to `FINAL` or `FINAL_VAR` in this cell, as text; survives a later crash. */
  final: string | null
  answer: AnswerFact
  /** What the instrument of the cell measured; null without one, and where it was lost. Untrusted, like all of a worker. */
  report: Record<string, unknown> | null
  usage: Usage
}

/**
 * A function of the service's own that runs in the worker, after the code of a cell and under the same limits.
 *
 * `python/instruments` has them. Agent code can reach what it measures with, so a report is
 * information for the agent and never evidence for a reward; only in a worker that never
 * ran agent code is it more than that.
 */
export type InstrumentCall = { name: string; arguments: Record<string, unknown> }

/** A request from agent code to the service, such as `llm_query`. */
export type WorkerCall = {
  name: string
  arguments: Record<string, unknown>
  /** Aborted when the cell or the episode ends. */
  signal: AbortSignal
}

/** What a fresh namespace holds; used again when a lost worker is replaced. */
export type OpenRequest = {
  preload: PreloadSet
  /** Variables to bind before the first cell (`context`). */
  variables: Record<string, string>
  /** Files to write into the work folder before the first cell: base64 by relative path. */
  files: Record<string, string>
  /** Install `FINAL`, `FINAL_VAR`, `SHOW_VARS` and the `answer` dict. */
  endings: boolean
  /** Names of call helpers to install (`llm_query`, …); each reaches `onCall`. */
  call_helpers: string[]
  /** Seeds `random`, numpy and torch when given. */
  seed: number | null
  /** Answers a call of agent code. A rejection becomes an exception in Python. */
  onCall: (call: WorkerCall) => Promise<unknown>
}

export type RunRequest = {
  code: string
  /** Time the cell may use before it is interrupted, in milliseconds. */
  limit_ms: number
  /** Runs after the code, unless that raised. */
  instrument?: InstrumentCall
  /** Run in a namespace as opening made it, made for this cell and thrown away; the episode's own stays as it is. */
  fresh?: boolean
  /** Sees every stdout byte of this cell before truncation, in order. */
  onStdout?: (chunk: Buffer) => void
}

export interface EpisodeWorker {
  /** Public names in the namespace, sorted. */
  readonly variables: string[]
  /** Run one cell. Resolves for everything agent code can do; cells of one worker run one at a time. */
  run(request: RunRequest): Promise<CellOutcome>
  /**
   * `str()` of the first of these variables that is there and not None.
   *
   * Converting runs agent code: when that takes too long, the process is
   * replaced, the value is null and `state_kept` false.
   */
  lookup(names: string[]): Promise<{ value: string | null; state_kept: boolean }>
  /** End the process tree. Returns at once; the teardown finishes off the request path. Idempotent. */
  close(): void
}

export interface Executor {
  /**
   * Take a warm worker, or wait in the queue for one.
   *
   * @throws {ServiceError} `queue_full`, `worker_start_failed`, `isolation_unavailable` or `shutting_down`.
   */
  open(request: OpenRequest): Promise<EpisodeWorker>
  /** What `/health` details and `forkyard doctor` print. */
  describe(): ExecutorDescription
  /** Ends every worker and zygote; resolves when the last process is gone. */
  close(): Promise<void>
}

export type ExecutorDescription = {
  /** False while a zygote is being replaced: live episodes go on, new ones wait. */
  forking: boolean
  level: IsolationLevel
  python: string
  torch: string | null
  preload: PreloadSet[]
  /** What the host does not give at this level, one sentence each. */
  notes: string[]
  workers: { busy: number; spare: number; starting: number; queued: number }
}

/** What a zygote reports of its sandbox; from weakest to strongest `none`, `landlock`, `namespaces`. */
export type IsolationLevel = ReadyFrame['level']
