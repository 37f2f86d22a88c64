/**
 * One sandboxed process: ready, open, one cell after the other, end.
 *
 * It never comes back: when it is lost, `EpisodeWorker` takes another. The first
 * cause of its end wins, whoever else notices later.
 */

import { messageOf, ServiceError } from '../errors.ts'
import type { Fork } from '../launcher/fork-desk.ts'
import { onLines } from '../launcher/lines.ts'
import type { ExitReport } from '../launcher/zygote-frames.ts'
import { type Counters, countersOf, TreeCounters } from './accounting.ts'
import { CallDesk } from './call-desk.ts'
import { CapturedOutput } from './captured-output.ts'
import type { OpenRequest, RunRequest } from './executor.ts'
import { type Ending, explainExit } from './exit.ts'
import { type FrameOf, OwedFrame, type OwedType } from './owed-frame.ts'
import {
  MAX_CELL_BYTES,
  MAX_CELL_FRAMES,
  MAX_FRAME_BYTES,
  parseWorkerFrame,
  type ResultFrame,
  type ServiceFrame,
  type WorkerFrame,
} from './protocol.ts'
import { measureShared } from './tree-usage.ts'

/** How long a worker may take to confine itself, and to take the variables of an episode. */
const READY_TIMEOUT_MS = 20_000
const OPEN_TIMEOUT_MS = 20_000
export const LOOKUP_TIMEOUT_MS = 1_000
/** How long the kernel may take to end a killed tree before the service answers without knowing. */
export const KILL_TIMEOUT_MS = 2_000
/** Answers that a worker may leave unread. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024

/** What a worker process needs to know of its limits. */
export type WorkerOptions = {
  /** Characters of each stream kept per cell. */
  keepChars: number
  /** Memory limit of the tree. */
  memoryBytes: number
}

/** The life of one worker process, from the fork to its end. */
export class WorkerProcess {
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  readonly calls: CallDesk
  /** Settles once, when the process tree is gone. */
  readonly ended: Promise<Ending>
  /** First value that `FINAL` announced in the running cell. */
  final: string | null = null
  /** Resident memory of this worker when it was ready, in bytes: what it shares with its zygote. */
  sharedBytes = 0
  /** Processes of this tree that the kernel killed for memory, as of the last look at the counters. */
  oomKills = 0
  readonly #fork: Fork
  readonly #counters: TreeCounters
  readonly #owed = new OwedFrame()
  #lastId = 0
  #writtenBytes = 0
  #writtenFrames = 0
  #cause: Ending | undefined
  #lastCounters: Counters | undefined

  private constructor(fork: Fork, { keepChars, memoryBytes }: WorkerOptions) {
    this.#fork = fork
    this.#counters = new TreeCounters(fork.accounting, memoryBytes)
    this.stdout = new CapturedOutput(fork.stdoutFd, keepChars)
    this.stderr = new CapturedOutput(fork.stderrFd, keepChars)
    this.calls = new CallDesk(frame => this.#send(frame))
    this.ended = fork.exited.then(report => this.#bury(report))
    fork.socket.on('close', () => this.#fork.kill())
    const onLine = (line: Buffer) => {
      this.#writtenBytes += line.length
      if (this.#writtenBytes > MAX_CELL_BYTES || ++this.#writtenFrames > MAX_CELL_FRAMES) {
        throw new ServiceError('protocol_violation', 'the worker floods the service with frames')
      }
      this.#take(parseWorkerFrame(line))
    }
    onLines(fork.socket, MAX_FRAME_BYTES, onLine, error => {
      const message = messageOf(error)
      this.end({ reason: 'protocol_violation', sentence: `ProtocolViolation: ${message}` })
    })
    fork.socket.resume()
  }

  /**
   * Wait until a forked worker has confined itself and compare what it found with what its level promises.
   *
   * @param required Attested facts that must be true.
   * @throws {ServiceError} `worker_start_failed`, also when a layer does not hold: such a worker is not used.
   */
  static async ready(fork: Fork, options: WorkerOptions, required: readonly string[]): Promise<WorkerProcess> {
    const worker = new WorkerProcess(fork, options)
    try {
      const { attestation } = await worker.#expect('ready', 0, READY_TIMEOUT_MS)
      const missing = required.filter(fact => attestation[fact] !== true)
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
    return this.#cause === undefined
  }

  /** Process id of the episode's init, as the service sees it. */
  get pid(): number {
    return this.#fork.pid
  }

  /** Folder on the host's disk that the episode writes to; null where it has a file system of its own. */
  get workFolder(): string | null {
    return this.#fork.workFolder
  }

  /** Whether the kernel counts this tree, or a watchdog has to. */
  get accounted(): boolean {
    return this.#fork.accounting.memory_peak !== null
  }

  /** What the kernel counted so far; after the end, what it had counted last. */
  counters(): Counters {
    const counters = this.#lastCounters ?? this.#counters.read()
    this.oomKills = Math.max(this.oomKills, counters.oom_kills)
    return counters
  }

  /** CPU time of the tree so far, in milliseconds; null where the host has no counter. */
  cpuMs(): number | null {
    return this.#lastCounters === undefined ? this.#counters.cpuMs() : this.#lastCounters.cpu_ms
  }

  /** @throws {ServiceError} `worker_start_failed` when the worker does not take the episode. */
  async open(request: OpenRequest, threads: number): Promise<string[]> {
    const { variables, files, endings, call_helpers, seed } = request
    const id = ++this.#lastId
    this.#send({ type: 'open', id, variables, files, endings, call_helpers, seed, threads })
    return (await this.#expect('opened', id, OPEN_TIMEOUT_MS)).variables
  }

  /**
   * Start a cell.
   *
   * @returns Its id, and its result, or why the process was lost.
   */
  run(request: RunRequest): { id: number; reply: Promise<ResultFrame | Ending> } {
    const { code, instrument = null, fresh = false } = request
    const id = ++this.#lastId
    this.final = null
    this.#writtenBytes = this.#writtenFrames = 0
    this.#send({ type: 'run', id, code, instrument, fresh })
    return { id, reply: this.#owed.wait('result', id) }
  }

  /** @param cause Quoted in the exception that the cell feels. */
  interrupt(id: number, cause: string): void {
    this.#send({ type: 'interrupt', id, cause })
  }

  /**
   * `str()` of the first of these variables that has a value; null when none has.
   *
   * @throws {ServiceError} `worker_start_failed` when the worker could not answer in time, and was ended.
   */
  async lookup(names: string[]): Promise<string | null> {
    const id = ++this.#lastId
    this.#send({ type: 'lookup', id, names })
    return (await this.#expect('value', id, LOOKUP_TIMEOUT_MS)).value
  }

  /** Kill the tree. The first cause given is the one that is reported. Idempotent. */
  end(cause: Ending): void {
    this.#cause ??= cause
    this.#fork.kill()
    const timer = setTimeout(() => this.#owed.lose(cause), KILL_TIMEOUT_MS)
    void this.ended.then(() => clearTimeout(timer))
  }

  /** Close the pipes and remove the work folder, once the tree is gone and its last output has been taken. */
  release(): void {
    void this.ended.then(async () => {
      this.stdout.close()
      this.stderr.close()
      this.#counters.close()
      await this.#fork.removeWork()
    })
  }

  async #expect<Type extends OwedType>(type: Type, id: number, timeoutMs: number): Promise<FrameOf<Type>> {
    const late: Ending = { reason: 'infra_error', sentence: `no ${type} frame within ${timeoutMs} ms` }
    const timer = setTimeout(() => this.end(late), timeoutMs)
    const answer = await this.#owed.wait(type, id)
    clearTimeout(timer)
    if (!('reason' in answer)) return answer
    throw new ServiceError('worker_start_failed', `the worker ended instead of sending ${type}: ${answer.sentence}`)
  }

  #take(frame: WorkerFrame): void {
    if (frame.type === 'call') this.calls.accept(frame)
    else if (frame.type !== 'final') this.#owed.settle(frame)
    else if (frame.id === this.#lastId) this.final ??= frame.value
  }

  #bury(report: ExitReport | null): Ending {
    this.#lastCounters = countersOf(report)
    this.#cause ??= explainExit(report, this.oomKills)
    this.#owed.lose(this.#cause)
    this.#fork.socket.destroy()
    return this.#cause
  }

  #send(frame: ServiceFrame): void {
    const { socket } = this.#fork
    if (socket.destroyed) return
    if (frame.type === 'reply' && socket.writableLength > MAX_UNREAD_BYTES) {
      const sentence = 'ProtocolViolation: the worker makes calls and does not read their answers'
      this.end({ reason: 'protocol_violation', sentence })
      return
    }
    socket.write(`${JSON.stringify(frame)}\n`)
  }
}
