/**
 * One sandboxed process: ready, open, one cell after the other, end.
 *
 * It never comes back: when it is lost, `EpisodeWorker` takes another. The first
 * cause of its end wins, whoever else notices later.
 */

import { performance } from 'node:perf_hooks'
import { ServiceError } from '../errors.ts'
import type { Fork } from '../launcher/fork-desk.ts'
import { onLines } from '../launcher/lines.ts'
import type { ExitReport } from '../launcher/zygote-frames.ts'
import { type Counters, readCounters } from './accounting.ts'
import { CallDesk } from './call-desk.ts'
import { CapturedOutput } from './captured-output.ts'
import type { OpenRequest } from './executor.ts'
import { type Ending, explainExit } from './exit.ts'
import { MAX_FRAME_BYTES, parseWorkerFrame, type ResultFrame, type ServiceFrame, type WorkerFrame } from './protocol.ts'
import { measureShared } from './tree-usage.ts'

/** How long a worker may take to confine itself, and to take the variables of an episode. */
const READY_TIMEOUT_MS = 20_000
const OPEN_TIMEOUT_MS = 20_000
const LOOKUP_TIMEOUT_MS = 2_000
/** How long the kernel may take to end a killed tree before the service answers without knowing. */
const KILL_TIMEOUT_MS = 5_000
const NS_PER_MS = 1e6

type Waiting = {
  type: WorkerFrame['type']
  id: number
  settle: (frame: WorkerFrame) => void
  lose: (ending: Ending) => void
}

export class WorkerProcess {
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  readonly calls: CallDesk
  /** Settles once, when the process tree is gone. */
  readonly ended: Promise<Ending>
  /** First value that `FINAL` announced in the running cell. */
  final: string | null = null
  readonly #fork: Fork
  #waiting: Waiting | undefined
  #lastId = 0
  #cause: Ending | undefined
  #oomKillsBefore = 0
  #gone = false
  #last: Counters | undefined
  /** Resident memory of this worker when it was ready, in bytes: what it shares with its zygote. */
  sharedBytes = 0

  private constructor(fork: Fork, keepChars: number) {
    this.#fork = fork
    this.stdout = new CapturedOutput(fork.stdoutFd, keepChars)
    this.stderr = new CapturedOutput(fork.stderrFd, keepChars)
    this.calls = new CallDesk(frame => this.#send(frame))
    this.ended = fork.exited.then(report => this.#bury(report))
    fork.socket.on('close', () => this.#fork.kill())
    onLines(
      fork.socket,
      MAX_FRAME_BYTES,
      line => this.#take(parseWorkerFrame(line)),
      error => this.end({ reason: 'protocol_violation', sentence: `ProtocolViolation: ${messageOf(error)}` }),
    )
    fork.socket.resume()
  }

  /**
   * Wait until a forked worker has confined itself and compare what it found with what its level promises.
   *
   * @param required Attested facts that must be true.
   * @throws {ServiceError} `worker_start_failed`, also when a layer does not hold: such a worker is not used.
   */
  static async ready(fork: Fork, keepChars: number, required: readonly string[]): Promise<WorkerProcess> {
    const worker = new WorkerProcess(fork, keepChars)
    try {
      const frame = await worker.#expect('ready', 0, READY_TIMEOUT_MS)
      const missing = frame.type === 'ready' ? required.filter(fact => frame.attestation[fact] !== true) : required
      if (missing.length > 0) {
        throw new ServiceError('worker_start_failed', `a worker's sandbox does not hold: ${missing.join(', ')}`)
      }
    } catch (error) {
      worker.end({ reason: 'infra_error', sentence: 'the worker could not be used' })
      worker.release()
      throw error
    }
    if (!worker.accounted) worker.sharedBytes = measureShared(fork.pid)
    return worker
  }

  get alive(): boolean {
    return this.#cause === undefined && !this.#gone
  }

  /** Process id of the episode's init, as the service sees it. */
  get pid(): number {
    return this.#fork.pid
  }

  /** Folder on the host's disk that the episode writes to; null where it has a file system of its own. */
  get workFolder(): string | null {
    return this.#fork.workFolder
  }

  /** What the kernel counted so far; after the end, what it had counted last. */
  counters(): Counters {
    return this.#last ?? readCounters(this.#fork.accounting)
  }

  /** Whether the kernel counts this tree, or a watchdog has to. */
  get accounted(): boolean {
    return this.#fork.accounting.memory_peak !== null
  }

  /** @throws {ServiceError} `worker_start_failed` when the worker does not take the episode. */
  async open(request: OpenRequest, threads: number): Promise<string[]> {
    const { variables, call_helpers, seed } = request
    const id = ++this.#lastId
    this.#send({ type: 'open', id, variables, call_helpers, seed, threads })
    const frame = await this.#expect('opened', id, OPEN_TIMEOUT_MS)
    return frame.type === 'opened' ? frame.variables : []
  }

  /** Start a cell; resolves with its result, or with why the process was lost. */
  run(code: string, limitMs: number, oomKillsBefore: number): { id: number; reply: Promise<ResultFrame | Ending> } {
    const id = ++this.#lastId
    this.final = null
    this.#oomKillsBefore = oomKillsBefore
    const reply = new Promise<ResultFrame | Ending>(resolve => {
      const settle = (frame: WorkerFrame) => frame.type === 'result' && resolve(frame)
      this.#wait({ type: 'result', id, settle, lose: resolve })
    })
    this.#send({ type: 'run', id, code, limit_s: limitMs / 1000 })
    return { id, reply }
  }

  interrupt(id: number): void {
    this.#send({ type: 'interrupt', id })
  }

  /**
   * `str()` of the first of these variables that has a value; null when none has.
   *
   * @throws {ServiceError} `worker_start_failed` when the worker could not answer in time, and was ended.
   */
  async lookup(names: string[]): Promise<string | null> {
    const id = ++this.#lastId
    this.#send({ type: 'lookup', id, names })
    const frame = await this.#expect('value', id, LOOKUP_TIMEOUT_MS)
    return frame.type === 'value' ? frame.value : null
  }

  /** Kill the tree. The first cause given is the one that is reported. Idempotent. */
  end(cause: Ending): void {
    this.#cause ??= cause
    this.#fork.kill()
    const timer = setTimeout(() => this.#lose(cause), KILL_TIMEOUT_MS)
    void this.ended.then(() => clearTimeout(timer))
  }

  async #expect(type: WorkerFrame['type'], id: number, timeoutMs: number): Promise<WorkerFrame> {
    const startedAt = performance.now()
    return await new Promise<WorkerFrame>((resolve, reject) => {
      const timer = setTimeout(
        () => this.end({ reason: 'infra_error', sentence: `no ${type} frame in time` }),
        timeoutMs,
      )
      const stop = () => {
        clearTimeout(timer)
        if (this.#waiting?.id === id) this.#waiting = undefined
      }
      this.#wait({
        type,
        id,
        settle: frame => {
          stop()
          resolve(frame)
        },
        lose: ending => {
          stop()
          const after = Math.round(performance.now() - startedAt)
          reject(
            new ServiceError(
              'worker_start_failed',
              `the worker ended after ${after} ms while it should send ${type}: ${ending.sentence}`,
            ),
          )
        },
      })
    })
  }

  #wait(waiting: Waiting): void {
    this.#waiting = waiting
    if (this.#gone || this.#cause !== undefined) {
      void this.ended.then(ending => this.#lose(ending))
    }
  }

  #take(frame: WorkerFrame): void {
    if (frame.type === 'final') {
      if (frame.id === this.#lastId) this.final ??= frame.value
      return
    }
    if (frame.type === 'call') {
      this.calls.accept(frame)
      return
    }
    const waiting = this.#waiting
    const id = 'id' in frame ? frame.id : 0
    if (waiting === undefined || waiting.type !== frame.type || waiting.id !== id) {
      throw new ServiceError('protocol_violation', `the worker sent a ${frame.type} frame that nothing waits for`)
    }
    this.#waiting = undefined
    waiting.settle(frame)
  }

  #bury(report: ExitReport | null): Ending {
    this.#gone = true
    this.#last = countersOf(report)
    const ending = this.#cause ?? explainExit(report, this.#oomKillsBefore)
    this.#cause = ending
    this.#lose(ending)
    this.#fork.socket.destroy()
    return ending
  }

  #lose(ending: Ending): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.lose(this.#cause ?? ending)
  }

  #send(frame: ServiceFrame): void {
    if (!this.#fork.socket.destroyed) this.#fork.socket.write(`${JSON.stringify(frame)}\n`)
  }

  /** Close the pipes and remove the work folder, once the tree is gone and its last output has been taken. */
  release(): void {
    void this.ended.then(async () => {
      this.stdout.close()
      this.stderr.close()
      await this.#fork.removeWork()
    })
  }
}

/** The last word of the kernel on a tree that is gone. */
function countersOf(report: ExitReport | null): Counters {
  if (report === null) return { cpu_ms: null, peak_memory_bytes: null, oom_kills: 0, pids_hits: 0 }
  const { cpu_ns, peak_memory_bytes, oom_kills, pids_hits } = report
  return { cpu_ms: cpu_ns === null ? null : cpu_ns / NS_PER_MS, peak_memory_bytes, oom_kills, pids_hits }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
