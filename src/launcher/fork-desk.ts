/** Pairs what a zygote says about a fork with the socket that the worker brings. */

import { closeSync, constants, existsSync, openSync, unlinkSync } from 'node:fs'
import type { Socket } from 'node:net'
import { messageOf, ServiceError } from '../errors.ts'
import type { WorkFolder } from './workspace.ts'
import type { Accounting, ExitReport, ForkedFrame, ZygoteFrame } from './zygote-frames.ts'

const MAX_HELLO_BYTES = 256
const NEWLINE = 0x0a
/** A fork takes milliseconds; a zygote that needs this long is stuck. */
const FORK_TIMEOUT_MS = 15_000

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
  timer: NodeJS.Timeout
  resolve: (fork: Fork) => void
  reject: (error: ServiceError) => void
}

/** What a desk asks of its zygote. */
export type ZygoteHand = {
  /** End the tree of a worker. */
  kill: (id: string) => void
  /** It did not fork in time. */
  stuck: () => void
}

/** The forks of one zygote that are not complete yet, and the ends of those that are. */
export class ForkDesk {
  readonly #hand: ZygoteHand
  readonly #pending = new Map<string, Pending>()
  readonly #exits = new Map<string, (report: ExitReport | null) => void>()
  readonly #sockets = new Map<string, Socket>()

  constructor(hand: ZygoteHand) {
    this.#hand = hand
  }

  /** Wait for both halves of a fork that was just asked for. */
  expect(id: string, work: WorkFolder | null): Promise<Fork> {
    const exited = new Promise<ExitReport | null>(settle => this.#exits.set(id, settle))
    const timer = setTimeout(() => this.#hand.stuck(), FORK_TIMEOUT_MS)
    return new Promise((resolve, reject) => this.#pending.set(id, { work, exited, timer, resolve, reject }))
  }

  take(frame: Exclude<ZygoteFrame, { type: 'ready' | 'refused' }>): void {
    const id = frame.worker_id
    const pending = this.#pending.get(id)
    if (frame.type === 'exited') {
      if (pending !== undefined) this.#fail(id, pending, 'the worker ended before it was connected')
      else this.#settle(id, frame)
      return
    }
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
    const pipes = takeFifos(forked)
    if (typeof pipes === 'string') {
      this.#hand.kill(id)
      this.#fail(id, pending, pipes)
      return
    }
    clearTimeout(pending.timer)
    this.#pending.delete(id)
    this.#sockets.set(id, socket)
    resolve({
      id,
      pid: forked.pid,
      socket,
      ...pipes,
      accounting: forked.accounting,
      exited,
      workFolder: work?.path ?? null,
      removeWork: async () => await work?.remove(),
      kill: () => {
        if (!this.#exits.has(id)) return
        this.#hand.kill(id)
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
    clearTimeout(pending.timer)
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
 * @returns Why it can't be done, when the run folder is gone or descriptors have run out.
 */
function takeFifos({ stdout, stderr }: ForkedFrame): { stdoutFd: number; stderrFd: number } | string {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK
  let stdoutFd: number | undefined
  try {
    stdoutFd = openSync(stdout, flags)
    return { stdoutFd, stderrFd: openSync(stderr, flags) }
  } catch (error) {
    if (stdoutFd !== undefined) closeSync(stdoutFd)
    return `the worker's output can not be read: ${messageOf(error)}`
  } finally {
    for (const path of [stdout, stderr]) if (existsSync(path)) unlinkSync(path)
  }
}
