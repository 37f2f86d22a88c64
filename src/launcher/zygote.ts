/**
 * One zygote: a warm Python process that forks a sandboxed worker on request.
 *
 * Control frames travel on its stdin and stdout; each worker brings a socket of
 * its own, connected by the zygote before the fork. The socket's path is gone
 * as soon as the zygote holds it, so no agent code can connect to it.
 */

import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { ServiceError } from '../errors.ts'
import { type Fork, ForkDesk } from './fork-desk.ts'
import { onLines } from './lines.ts'
import { makeWorkFolder } from './workspace.ts'
import { type ConfigureFrame, type ControlFrame, type ReadyFrame, ZygoteFrame } from './zygote-frames.ts'

const MAX_CONTROL_BYTES = 1 << 20
const STDERR_KEPT_CHARS = 4096
/** A cold disk may take a minute to read torch. */
const START_TIMEOUT_MS = 180_000
/** A zygote gives its workers five seconds to end. */
const STOP_TIMEOUT_MS = 8_000
/** Longest path the kernel takes for a socket, its final zero included. */
const SOCKET_PATH_BYTES = 108

/** How to start a zygote; see `ConfigureFrame` for the rest. */
export type ZygoteOptions = Omit<ConfigureFrame, 'type' | 'socket'> & {
  /** The interpreter. */
  python: string
  /** Folder of the `worker` package. */
  python_path: string
  /** Told what the zygote and failing workers write to stderr. */
  onLog: (line: string) => void
}

let zygoteCount = 0

/** A zygote that has imported its packages and forks on request. */
export class Zygote {
  readonly ready: ReadyFrame
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>
  readonly #runDir: string
  readonly #onLog: (line: string) => void
  readonly #write: (frame: ControlFrame) => void
  readonly #desk: ForkDesk
  readonly #finish: () => void
  #forkCount = 0
  #alive = true

  private constructor(ready: ReadyFrame, parts: Parts, { run_dir, onLog }: ZygoteOptions) {
    this.ready = ready
    this.ended = parts.ended
    this.#desk = parts.desk
    this.#write = parts.write
    this.#finish = parts.finish
    this.#runDir = run_dir
    this.#onLog = onLog
    void parts.ended.then(() => {
      this.#alive = false
    })
  }

  get alive(): boolean {
    return this.#alive
  }

  /**
   * Spawn a zygote and wait until it has imported its packages.
   *
   * @throws {ServiceError} `isolation_unavailable` when the host can't give the
   * level asked for, `worker_start_failed` when Python can't start.
   */
  static async start(options: ZygoteOptions): Promise<Zygote> {
    const { python, python_path, onLog, ...configure } = options
    const { server, path } = await listen(options.run_dir)
    const child = execa(python, ['-c', 'from worker.zygote import main; main()'], {
      extendEnv: false,
      env: zygoteEnvironment(python_path),
      cwd: options.run_dir,
      // A group of its own: Ctrl-C reaches the service alone, which then closes this pipe.
      detached: true,
      buffer: false,
      reject: false,
      encoding: 'buffer',
      stdin: 'pipe',
    })
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString('utf8')).slice(-STDERR_KEPT_CHARS)
      onLog(chunk.toString('utf8').trimEnd())
    })
    // A write to a zygote that just died is answered by its end, not by an error here.
    child.stdin.on('error', error => onLog(`zygote stdin: ${error.message}`))
    const write = (frame: ControlFrame) => void child.stdin.write(`${JSON.stringify(frame)}\n`)
    const desk = new ForkDesk({
      kill: worker_id => child.stdin.writable && write({ type: 'kill', worker_id }),
      stuck: () => child.kill('SIGKILL'),
    })
    const ended = child.then(() => {
      server.close()
      desk.bury()
    })
    server.on('connection', socket => desk.greet(socket))
    // Out of descriptors, most likely: the connection is not accepted, and its fork times out.
    server.on('error', error => onLog(`zygote socket: ${error.message}`))
    write({ type: 'configure', socket: path, ...configure })
    const late = setTimeout(() => child.kill('SIGKILL'), START_TIMEOUT_MS)
    void ended.then(() => clearTimeout(late))
    const ready = await new Promise<ReadyFrame>((resolve, reject) => {
      const onLine = (line: Buffer) => {
        const frame = ZygoteFrame.parse(JSON.parse(line.toString('utf8')))
        if (frame.type === 'refused') throw new ServiceError('isolation_unavailable', frame.message)
        if (frame.type === 'ready') resolve(frame)
        else desk.take(frame)
      }
      onLines(child.stdout, MAX_CONTROL_BYTES, onLine, error => {
        reject(error)
        child.kill('SIGKILL')
      })
      const died = () => `Python ended while it started: ${stderr.trim() || 'no message'}`
      void ended.then(() => reject(new ServiceError('worker_start_failed', died())))
    })
    clearTimeout(late)
    if (ready.protocol !== options.protocol) {
      child.kill('SIGKILL')
      const versions = `the Python side speaks protocol ${ready.protocol}, expected ${options.protocol}`
      throw new ServiceError('worker_start_failed', versions)
    }
    const finish = () => {
      if (child.stdin.writableEnded) return
      write({ type: 'stop' })
      child.stdin.end()
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      void ended.then(() => clearTimeout(timer))
    }
    return new Zygote(ready, { desk, ended, write, finish }, options)
  }

  /**
   * Fork one worker. It is connected but not yet confined: wait for its `ready` frame.
   *
   * @throws {ServiceError} `worker_start_failed`.
   */
  async fork(): Promise<Fork> {
    const work = this.ready.level === 'namespaces' ? null : await makeWorkFolder(this.#runDir, this.#onLog)
    if (!this.#alive) throw new ServiceError('worker_start_failed', 'the zygote is gone')
    const worker_id = `${this.ready.pid}-${++this.#forkCount}`
    const fork = this.#desk.expect(worker_id, work)
    this.#write({ type: 'fork', worker_id, work: work?.path ?? null })
    return await fork
  }

  /** Ends the zygote, which first ends the workers that are left; `ended` tells when. Idempotent. */
  close(): void {
    this.#finish()
  }
}

type Parts = {
  desk: ForkDesk
  ended: Promise<void>
  write: (frame: ControlFrame) => void
  finish: () => void
}

async function listen(runDir: string): Promise<{ server: Server; path: string }> {
  const path = join(runDir, `z${zygoteCount++}.sock`)
  if (Buffer.byteLength(path) >= SOCKET_PATH_BYTES) {
    throw new ServiceError('worker_start_failed', `the temporary folder's path is too long for a socket: ${path}`)
  }
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve))
  return { server, path }
}

/** Built from nothing: whatever a zygote holds is readable in every worker, so no variable is inherited. */
function zygoteEnvironment(pythonPath: string): Record<string, string> {
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    LANG: 'C.UTF-8',
    PYTHONPATH: pythonPath,
    PYTHONNOUSERSITE: '1',
    PYTHONHASHSEED: '0',
    // Threads that a library starts before a fork hang its children: one thread until the worker asks for more.
    OMP_NUM_THREADS: '1',
    OPENBLAS_NUM_THREADS: '1',
    MKL_NUM_THREADS: '1',
    // The default CUDA check initializes the driver, which a fork does not survive.
    PYTORCH_NVML_BASED_CUDA_CHECK: '1',
  }
}
