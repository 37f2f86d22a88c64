/** Runs a submission once, in a worker of its own, and takes what it left. Nothing that comes from there is believed. */

import { z } from 'zod'
import type { CellOutcome, EpisodeWorker, Reason } from '../executor/executor.ts'
import { type GradingBudget, InfraFailure } from './grading-attempts.ts'
import { cellLimit, type Files } from './grading-worker.ts'

/**
 * Limits of one run, in seconds: CPU time, in whole ones, and wall time that is generous because machines are shared.
 * Three runs, one after the other, fit into the ceiling of a step, so a script that sleeps is ended and not `busy`.
 */
export type ScriptLimits = { readonly cpu_s: number; readonly wall_s: number }
export const SCRIPT_LIMITS: ScriptLimits = Object.freeze({ cpu_s: 8, wall_s: 12 })

/** One run as it is shown: what a terminal would have said. `reason` is `exception` for exit code 1, `exited` for others. */
export type ScriptRun = {
  /** At most what an executor keeps of a cell, head and tail. */
  stdout: string
  stderr: string
  /** As Python's `subprocess` tells it: negative for a signal. */
  exit_code: number
  timed_out: boolean
  elapsed_s: number
  reason: Reason
}

/** A run and what it left. */
export type ScriptResult = {
  shown: ScriptRun
  /** The first part of stdout, for whoever looks for a line in it. */
  printed: string
  /** Why the run counts for nothing: a limit ended it, or its worker. Null where its files are to be measured. */
  ended: string | null
  /** What it left, base64 by name. */
  files: Files
  /** Why a file was not taken, by name. */
  refused: Readonly<Record<string, string>>
  /** Memory that the script and its processes had at their peak, over a script that does nothing. */
  memory_growth_mib: number | null
}

const MIB = 2 ** 20
/** What `python/tasks/grading/tensor_files.py` reads of one file. */
const MAX_FILE_BYTES = 8 * MIB
const MAX_TOTAL_BYTES = 16 * MIB
const MAX_PRINTED_CHARS = 256 * 1024
/** Of the memory that is counted for a tree, what may be the worker's own, and files that it happened to read first. */
const WORKER_MIB = 48
const COLLECT_LIMIT_MS = 10_000
/** A script that waited for a CPU for more than this share of its life may be slow for no fault of its own. */
const STARVED_SHARE = 0.3
/** Share of its CPU time beyond which no machine is to blame: scripts of tasks need less than a second. */
const BLAMELESS_SHARE = 0.25

const measured = z.number().nullable().catch(null)
const ScriptReport = z.object({
  exit_code: z.int().nullable().catch(null),
  signal: z.int().nullable().catch(null),
  cpu_s: measured,
  wall_s: measured,
  peak_growth_bytes: measured,
  starved: measured,
  timed_out: z.boolean().catch(false),
})
type ScriptReport = z.infer<typeof ScriptReport>

const Collected = z.object({
  files: z.record(z.string(), z.base64()),
  refused: z.record(z.string(), z.string().max(1000)),
})

/**
 * Run a script in a worker that was opened with its inputs.
 *
 * @param outputs Names of the files to take.
 * @throws {InfraFailure} If it could not be run, or had no CPU to run on.
 */
export async function runScript(
  worker: EpisodeWorker,
  code: string,
  outputs: readonly string[],
  budget: GradingBudget,
  limits: ScriptLimits,
): Promise<ScriptResult> {
  const wallMs = limits.wall_s * 1000
  const limit_ms = cellLimit(wallMs, budget)
  const printed = new TextHead(MAX_PRINTED_CHARS)
  const outcome = await worker.run({
    code: '',
    limit_ms,
    instrument: { name: 'run_script', arguments: { code, cpu_s: limits.cpu_s } },
    onStdout: chunk => printed.add(chunk),
  })
  const report = ScriptReport.parse(outcome.report ?? {})
  refuseOurFailures(outcome, report, limits, limit_ms < wallMs)
  const ended = endedBy(outcome, report, limits)
  const shown = show(outcome, report, ended)
  const memory_growth_mib = growthOf(outcome, report)
  const result = { shown, printed: printed.text, ended, files: {}, refused: {}, memory_growth_mib }
  return ended === null ? { ...result, ...(await collect(worker, outputs, budget)) } : result
}

/** The start of a text that arrives in pieces. */
class TextHead {
  readonly #decoder = new TextDecoder()
  readonly #maxChars: number
  text = ''

  constructor(maxChars: number) {
    this.#maxChars = maxChars
  }

  add(chunk: Buffer): void {
    if (this.text.length >= this.#maxChars) return
    this.text = (this.text + this.#decoder.decode(chunk, { stream: true })).slice(0, this.#maxChars)
  }
}

function refuseOurFailures(outcome: CellOutcome, report: ScriptReport, limits: ScriptLimits, cut: boolean): void {
  const { reason, exception } = outcome
  if (reason === 'infra_error') throw new InfraFailure(`the script could not be run: ${exception ?? reason}`)
  // A script that can't be got rid of is its own doing; what else raises is the fork.
  if (reason === 'exception' && exception?.startsWith('TreeSurvived') !== true) {
    throw new InfraFailure(`the script could not be started: ${exception ?? reason}`)
  }
  if (reason !== 'timeout' && !report.timed_out) return
  const cpu_s = cpuOf(outcome, report)
  if (cpu_s >= limits.cpu_s) return
  if (cut) throw new InfraFailure('busy: the time of the grading ran out while the script ran', { lasting: true })
  if (cpu_s < limits.cpu_s * BLAMELESS_SHARE && isStarved(cpu_s, report))
    throw new InfraFailure('the script got no CPU to run on')
}

/**
 * Whether others kept a script from running: it waited for a CPU for a good part of its life, and not for its own
 * processes. The kernel forgets the CPU time of processes that nobody waits for, except in the count for the tree;
 * behind those the script may have waited as long as they ran.
 */
function isStarved(cpu_s: number, { starved, wall_s, cpu_s: known_s }: ScriptReport): boolean {
  if (starved === null || wall_s === null) return false
  const forgotten_s = Math.max(0, cpu_s - (known_s ?? 0))
  return starved * wall_s - forgotten_s > STARVED_SHARE * wall_s
}

/** CPU time of the whole tree where the host counts it, of the script elsewhere. */
const cpuOf = ({ usage }: CellOutcome, report: ScriptReport): number =>
  Math.max((usage.cpu_ms ?? 0) / 1000, report.cpu_s ?? 0)

/**
 * Memory growth in MiB; null when it is not known.
 *
 * The kernel's figure for the script leaves out processes that nobody waited for; that for the tree, where the
 * host has one, does not, and it holds a little more than the script.
 */
function growthOf({ usage }: CellOutcome, { peak_growth_bytes }: ScriptReport): number | null {
  if (peak_growth_bytes === null) return null
  return Math.max(peak_growth_bytes / MIB, (usage.peak_memory_bytes ?? 0) / MIB - WORKER_MIB)
}

/** Why a run counts for nothing; null when it ended by itself, well or not. */
function endedBy(outcome: CellOutcome, report: ScriptReport, limits: ScriptLimits): string | null {
  // Also where the script ignored the signal and went on.
  if (cpuOf(outcome, report) >= limits.cpu_s) return `the script used more than its ${limits.cpu_s} s of CPU time`
  if (outcome.reason === 'timeout' || report.timed_out) return `the script ran longer than its ${limits.wall_s} s`
  if (outcome.reason === 'memory_limit') return 'the script was ended for its memory'
  if (outcome.reason !== 'ok' || !outcome.state_kept) {
    return `the worker of the script ended (${outcome.reason}: ${outcome.exception ?? 'no word of why'})`
  }
  return report.exit_code === null && report.signal === null ? 'the script left no word of how it ended' : null
}

function show(outcome: CellOutcome, report: ScriptReport, ended: string | null): ScriptRun {
  const timed_out = outcome.reason === 'timeout' || report.timed_out
  return {
    stdout: outcome.stdout.text,
    // What the executor says of a cell speaks of variables, and a script leaves none.
    stderr: ended === null ? outcome.stderr.text : outcome.stderr.text.replace(/^StepTimeout: .*$/m, ended),
    exit_code: report.exit_code ?? (report.signal === null ? -1 : -report.signal),
    timed_out,
    elapsed_s: report.wall_s ?? outcome.usage.wall_ms / 1000,
    reason: timed_out ? 'timeout' : ended !== null && outcome.reason !== 'ok' ? outcome.reason : reasonOf(report),
  }
}

function reasonOf({ exit_code, signal }: ScriptReport): Reason {
  if (signal !== null) return 'signal'
  if (exit_code === 0) return 'ok'
  return exit_code === 1 ? 'exception' : exit_code === null ? 'protocol_violation' : 'exited'
}

async function collect(
  worker: EpisodeWorker,
  names: readonly string[],
  budget: GradingBudget,
): Promise<Pick<ScriptResult, 'ended' | 'files' | 'refused'>> {
  const nothing = (ended: string) => ({ ended, files: {}, refused: {} })
  const { reason, restarted, exception, report } = await worker.run({
    code: '',
    limit_ms: cellLimit(COLLECT_LIMIT_MS, budget),
    instrument: {
      name: 'collect_files',
      arguments: { names: [...names], max_file_bytes: MAX_FILE_BYTES, max_total_bytes: MAX_TOTAL_BYTES },
    },
  })
  if (reason === 'infra_error' || reason === 'timeout') {
    throw new InfraFailure(`the files of the script could not be taken: ${exception ?? reason}`)
  }
  if (restarted !== null) return nothing(`the worker of the script ended: ${restarted}`)
  const parsed = Collected.safeParse(report)
  if (reason !== 'ok' || !parsed.success) return nothing(`the files of the script could not be taken: ${reason}`)
  const expected = Object.entries(parsed.data.files).filter(([name]) => names.includes(name))
  const bytes = expected.reduce((sum, [, text]) => sum + Buffer.byteLength(text, 'base64'), 0)
  if (bytes > MAX_TOTAL_BYTES) return nothing(`the files of the script have ${bytes} bytes, too many to be read`)
  return { ended: null, files: Object.fromEntries(expected), refused: parsed.data.refused }
}
