/** Pairs what a zygote says about a fork with the socket that the worker brings. */

import { constants, existsSync, openSync, unlinkSync } from 'node:fs'
import type { Socket } from 'node:net'
import { ServiceError } from '../errors.ts'
import type { WorkFolder } from './workspace.ts'
import type { Accounting, ExitReport, ForkedFrame, ZygoteFrame } from './zygote-frames.ts'

const MAX_HELLO_BYTES = 256
const NEWLINE = 0x0a

/** A forked worker as raw parts. It lives on when its zygote dies; it ends when its socket closes. */
export type Fork = {
  id: string
  /** Process id of the episode's init, as the service sees it. */
  pid: number
  socket: Socket
  /** Reading ends of the pipes behind descriptors 1 and 2, non-blocking. */
  stdoutFd: number
  stderrFd: number
  accounting: Accounting
  /** Settles when the tree is gone: with what the zygote saw, or with null when that is dead too. */
  exited: Promise<ExitReport | null>
  /** Folder on the host's disk that the episode writes to; null where it has a file system of its own. */
  workFolder: string | null
  /** Remove that folder; for after `exited`. */
  removeWork(): Promise<void>
  /** End the whole tree at once; harmless after its end. */
  kill(): void
}

type Pending = {
  forked?: ForkedFrame
  socket?: Socket
  work: WorkFolder | null
  exited: Promise<ExitReport | null>
  resolve: (fork: Fork) => void
  reject: (error: ServiceError) => void
}

export class ForkDesk {
  readonly #kill: (id: string) => void
  readonly #pending = new Map<string, Pending>()
  readonly #exits = new Map<string, (report: ExitReport | null) => void>()
  readonly #sockets = new Map<string, Socket>()

  /** @param kill Asks the zygote to end the tree of a worker. */
  constructor(kill: (id: string) => void) {
    this.#kill = kill
  }

  /** Wait for both halves of a fork that was just asked for. */
  expect(id: string, work: WorkFolder | null): Promise<Fork> {
    const exited = new Promise<ExitReport | null>(settle => this.#exits.set(id, settle))
    return new Promise((resolve, reject) => this.#pending.set(id, { work, exited, resolve, reject }))
  }

  take(frame: Exclude<ZygoteFrame, { type: 'ready' | 'refused' }>): void {
    const id = frame.worker_id
    if (frame.type === 'exited') {
      this.#settle(id, frame)
      return
    }
    const pending = this.#pending.get(id)
    if (pending === undefined) return
    if (frame.type === 'forked') {
      pending.forked = frame
      this.#complete(id, pending)
      return
    }
    this.#fail(id, pending, frame.message)
  }

  /** Read the line by which a new connection says whose it is; strangers are dropped. */
  greet(socket: Socket): void {
    let held: Buffer = Buffer.alloc(0)
    socket.on('error', () => socket.destroy())
    const onData = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      const end = held.indexOf(NEWLINE)
      if (end === -1 && held.length <= MAX_HELLO_BYTES) return
      socket.off('data', onData).pause()
      const id = held.subarray(0, Math.max(end, 0)).toString('utf8')
      const pending = this.#pending.get(id)
      if (pending === undefined || pending.socket !== undefined) {
        socket.destroy()
        return
      }
      if (end + 1 < held.length) socket.unshift(held.subarray(end + 1))
      pending.socket = socket
      this.#complete(id, pending)
    }
    socket.on('data', onData)
  }

  /** The zygote is gone; its workers live on, and their sockets tell when they end. */
  bury(): void {
    for (const [id, pending] of this.#pending) this.#fail(id, pending, 'the zygote died')
    for (const [id, socket] of this.#sockets) {
      if (socket.closed) this.#settle(id, null)
      else socket.once('close', () => this.#settle(id, null))
    }
  }

  #complete(id: string, pending: Pending): void {
    const { forked, socket, exited, work, resolve } = pending
    if (forked === undefined || socket === undefined) return
    const pipes = takeFifos([forked.stdout, forked.stderr])
    if (pipes === null) {
      this.#kill(id)
      this.#fail(id, pending, 'the run folder is gone: the zygote is leaving')
      return
    }
    this.#pending.delete(id)
    this.#sockets.set(id, socket)
    resolve({
      id,
      pid: forked.pid,
      socket,
      stdoutFd: pipes[0],
      stderrFd: pipes[1],
      accounting: forked.accounting,
      exited,
      workFolder: work?.path ?? null,
      removeWork: async () => await work?.remove(),
      kill: () => {
        if (!this.#exits.has(id)) return
        this.#kill(id)
        // The episode's init ends its tree when this closes, whether the zygote lives or not.
        socket.destroy()
      },
    })
  }

  #settle(id: string, report: ExitReport | null): void {
    this.#exits.get(id)?.(report)
    this.#exits.delete(id)
    this.#sockets.delete(id)
  }

  #fail(id: string, pending: Pending, message: string): void {
    this.#pending.delete(id)
    this.#exits.delete(id)
    pending.socket?.destroy()
    pending.reject(new ServiceError('worker_start_failed', message))
    void pending.work?.remove()
  }
}

/**
 * Open the reading ends without waiting for a writer, and remove the names: nobody else opens them.
 *
 * @returns Null when the zygote has removed them already.
 */
function takeFifos(paths: [string, string]): [number, number] | null {
  const [stdout, stderr] = paths
  if (!paths.every(path => existsSync(path))) return null
  const opened: [number, number] = [openReader(stdout), openReader(stderr)]
  for (const path of paths) unlinkSync(path)
  return opened
}

function openReader(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
}
