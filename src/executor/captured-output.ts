/** What a cell wrote to one descriptor: head and tail kept, everything counted. */

import { isAscii } from 'node:buffer'
import { readSync } from 'node:fs'
import { Socket } from 'node:net'
import type { CapturedText } from './executor.ts'

const MAX_UTF8_BYTES = 4
/** What a pipe can hold: all that was written before a frame arrived is within this. */
const PIPE_BYTES = 64 * 1024
const READ_BYTES = 64 * 1024

/** Drains one pipe of a worker for its whole life, cell after cell, in bounded memory. */
export class CapturedOutput {
  readonly #descriptor: number
  readonly #socket: Socket
  readonly #keepBytes: number
  readonly #keepChars: number
  #head: Buffer[] = []
  #headBytes = 0
  #tail: Buffer[] = []
  #tailBytes = 0
  #totalBytes = 0
  #totalChars = 0
  #tap: ((chunk: Buffer) => void) | undefined
  #closed = false

  /**
   * @param descriptor Reading end of a pipe, non-blocking; closed by `close`.
   * @param keepChars Characters kept of a cell's output, half of them from its end.
   */
  constructor(descriptor: number, keepChars: number) {
    this.#descriptor = descriptor
    this.#keepChars = keepChars
    this.#keepBytes = keepChars * MAX_UTF8_BYTES
    this.#socket = new Socket({ fd: descriptor, readable: true, writable: false })
    this.#socket.on('data', (chunk: Buffer) => this.#accept(chunk))
    // The writers are gone: what there was to read has been read.
    this.#socket.on('error', () => this.#socket.destroy())
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  /** Let `tap` see the bytes of the coming cell, those that arrived between two cells included. */
  begin(tap: ((chunk: Buffer) => void) | undefined): void {
    this.#tap = tap
    if (tap !== undefined) for (const chunk of [...this.#head, ...this.#tail]) tap(chunk)
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
    const captured = this.#text()
    this.#head = []
    this.#tail = []
    this.#headBytes = this.#tailBytes = this.#totalBytes = this.#totalChars = 0
    return captured
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #drain(): void {
    if (this.#closed || this.#socket.destroyed || this.#socket.readableEnded) return
    const chunk = Buffer.allocUnsafe(READ_BYTES)
    for (let read = 0; read < PIPE_BYTES; ) {
      const count = readNow(this.#descriptor, chunk)
      if (count === 0) return
      read += count
      this.#accept(Buffer.from(chunk.subarray(0, count)))
    }
  }

  #accept(chunk: Buffer): void {
    this.#totalBytes += chunk.length
    this.#totalChars += countChars(chunk)
    this.#tap?.(chunk)
    let rest = chunk
    if (this.#headBytes < this.#keepBytes) {
      const part = rest.subarray(0, this.#keepBytes - this.#headBytes)
      this.#head.push(part)
      this.#headBytes += part.length
      rest = rest.subarray(part.length)
    }
    if (rest.length === 0) return
    // A copy: a slice would keep its whole 64 KiB chunk alive.
    this.#tail.push(Buffer.from(rest.subarray(-this.#keepBytes)))
    this.#tailBytes += Math.min(rest.length, this.#keepBytes)
    while (this.#tail.length > 1 && this.#tailBytes - (this.#tail[0]?.length ?? 0) >= this.#keepBytes) {
      this.#tailBytes -= this.#tail.shift()?.length ?? 0
    }
  }

  #text(): CapturedText {
    const total_chars = this.#totalChars
    const total_bytes = this.#totalBytes
    const whole = this.#tailBytes + this.#headBytes === total_bytes
    const head = Buffer.concat(whole ? [...this.#head, ...this.#tail] : this.#head).toString('utf8')
    if (whole && head.length <= this.#keepChars) return { text: head, total_chars, total_bytes, truncated: false }
    const codePoints = [...head]
    if (whole && codePoints.length <= this.#keepChars) return { text: head, total_chars, total_bytes, truncated: false }
    const half = Math.ceil(this.#keepChars / 2)
    const end = whole ? codePoints : [...Buffer.concat(this.#tail).toString('utf8')]
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
