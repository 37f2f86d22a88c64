/** What a cell wrote to one descriptor: head and tail kept, everything counted. */

import { isAscii } from 'node:buffer'
import { readSync } from 'node:fs'
import { Socket } from 'node:net'
import type { CapturedText } from './executor.ts'
import { KeptBytes } from './kept-bytes.ts'

const MAX_UTF8_BYTES = 4
/** What a process without privileges can make a pipe hold: all that was written before a frame arrived is within this. */
const PIPE_BYTES = 1024 * 1024
/** What is taken between two cells; then the pipe fills up and whoever writes has to wait for the next cell. */
const BETWEEN_CELLS_BYTES = 1024 * 1024
/** Where all pipes are read into, one after the other: what is kept is copied out before the next reading. */
const arrived = Buffer.alloc(64 * 1024)

/** Drains one pipe of a worker for its whole life, cell after cell, in bounded memory. */
export class CapturedOutput {
  readonly #descriptor: number
  readonly #socket: Socket
  readonly #keepChars: number
  #kept: KeptBytes
  #totalChars = 0
  #tap: ((chunk: Buffer) => void) | undefined
  #running = false
  #closed = false

  /**
   * @param descriptor Reading end of a pipe, non-blocking; closed by `close`.
   * @param keepChars Characters kept of a cell's output, half of them from its end.
   */
  constructor(descriptor: number, keepChars: number) {
    this.#descriptor = descriptor
    this.#keepChars = keepChars
    this.#kept = new KeptBytes(keepChars * MAX_UTF8_BYTES)
    const callback = (count: number) => {
      this.#accept(arrived.subarray(0, count))
      return this.#running || this.#kept.total < BETWEEN_CELLS_BYTES
    }
    this.#socket = new Socket({
      fd: descriptor,
      readable: true,
      writable: false,
      onread: { buffer: arrived, callback },
    })
    // The writers are gone: what there was to read has been read.
    this.#socket.on('error', () => this.#socket.destroy())
  }

  get totalBytes(): number {
    return this.#kept.total
  }

  /** Let `tap` see the bytes of the coming cell, those that arrived between two cells included. */
  begin(tap: ((chunk: Buffer) => void) | undefined): void {
    this.#running = true
    this.#socket.resume()
    this.#tap = tap
    if (tap !== undefined && this.#kept.total > 0) tap(Buffer.concat([this.#kept.head(), this.#kept.tail()]))
  }

  /**
   * Take the output of the cell that just ended and start afresh.
   *
   * A frame was sent after the output before it was written, so reading what
   * the pipe holds at this moment gets all of it.
   *
   * @param closing Text of the service's own to end with, such as why a worker was lost.
   */
  take(closing = ''): CapturedText {
    this.#drain()
    this.#accept(Buffer.from(closing))
    this.#tap = undefined
    this.#running = false
    const captured = this.#text()
    this.#kept = new KeptBytes(this.#keepChars * MAX_UTF8_BYTES)
    this.#totalChars = 0
    return captured
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #drain(): void {
    if (this.#closed || this.#socket.destroyed || this.#socket.readableEnded) return
    for (let read = 0; read < PIPE_BYTES; ) {
      const count = readNow(this.#descriptor, arrived)
      if (count === 0) return
      read += count
      this.#accept(arrived.subarray(0, count))
    }
  }

  #accept(chunk: Buffer): void {
    this.#totalChars += countChars(chunk)
    this.#tap?.(chunk)
    this.#kept.push(chunk)
  }

  #text(): CapturedText {
    const total_chars = this.#totalChars
    const total_bytes = this.#kept.total
    const { whole } = this.#kept
    const head = whole ? Buffer.concat([this.#kept.head(), this.#kept.tail()]) : this.#kept.head()
    const decoded = head.toString('utf8')
    // A character has one or two code units, so most outputs need no counting.
    if (whole && (decoded.length <= this.#keepChars || [...decoded].length <= this.#keepChars)) {
      return { text: decoded, total_chars, total_bytes, truncated: false }
    }
    const codePoints = [...decoded]
    const half = Math.ceil(this.#keepChars / 2)
    const end = whole ? codePoints : [...this.#kept.tail().toString('utf8')]
    const mark = `\n... (truncated, total ${total_chars} chars)\n`
    const text = codePoints.slice(0, half).join('') + mark + end.slice(half - this.#keepChars).join('')
    return { text, total_chars, total_bytes, truncated: true }
  }
}

/** Read at once; 0 when there is nothing, or nobody left who could write. */
function readNow(descriptor: number, into: Buffer): number {
  try {
    return readSync(descriptor, into)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0
    throw error
  }
}

/** Characters of UTF-8 text: every byte but the continuation bytes (10xxxxxx) begins one. */
function countChars(chunk: Buffer): number {
  if (isAscii(chunk)) return chunk.length
  // Four bytes at a time, from the first word boundary of the memory behind the chunk on.
  const lead = Math.min((4 - (chunk.byteOffset & 3)) & 3, chunk.length)
  const words = new Uint32Array(chunk.buffer, chunk.byteOffset + lead, (chunk.length - lead) >>> 2)
  let continuations = 0
  for (const word of words) {
    const marks = (word >>> 7) & (~word >>> 6) & 0x01010101
    continuations += Math.imul(marks, 0x01010101) >>> 24
  }
  const tail = lead + words.length * 4
  for (const byte of chunk.subarray(0, lead)) if ((byte & 0xc0) === 0x80) continuations++
  for (const byte of chunk.subarray(tail)) if ((byte & 0xc0) === 0x80) continuations++
  return chunk.length - continuations
}
