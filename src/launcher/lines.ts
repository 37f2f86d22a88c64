/** Bounded line splitting for the sockets and pipes between the service and Python. */

import type { Readable } from 'node:stream'
import { ServiceError } from '../errors.ts'

const NEWLINE = 0x0a
const FIRST_BYTES = 4096

/**
 * Call back for each complete line of a stream, split on byte 0x0A only.
 *
 * Bytes after the last newline are dropped: a process that died mid-line has
 * not written a frame.
 *
 * @param maxLineBytes Longest line accepted, newline excluded; a longer one ends the reading with
 * `protocol_violation`. A line that arrives in pieces, however small, is held in less than twice its size.
 * @param onLine May throw; the error goes to `onError` and reading stops.
 */
export function onLines(
  source: Readable,
  maxLineBytes: number,
  onLine: (line: Buffer) => void,
  onError: (error: unknown) => void,
): void {
  const partial = new PartialLine(maxLineBytes)
  let stopped = false
  source.on('data', (chunk: Buffer) => {
    if (stopped) return
    try {
      let start = 0
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        const rest = chunk.subarray(start, end)
        start = end + 1
        onLine(partial.finish(rest))
      }
      if (start === chunk.length) return
      partial.push(chunk.subarray(start))
      if (partial.length > maxLineBytes) {
        throw new ServiceError('protocol_violation', `a line is longer than ${maxLineBytes} bytes`)
      }
    } catch (error) {
      stopped = true
      partial.finish(Buffer.alloc(0))
      onError(error)
    }
  })
}

/** A line that has not ended yet, in one buffer that doubles. */
class PartialLine {
  readonly #mostBytes: number
  #held: Buffer = Buffer.alloc(0)
  length = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  push(piece: Buffer): void {
    const needed = this.length + piece.length
    if (needed > this.#held.length) {
      const doubled = Math.min(2 * this.#held.length, this.#mostBytes)
      const larger = Buffer.allocUnsafe(Math.max(needed, doubled, FIRST_BYTES))
      this.#held.copy(larger, 0, 0, this.length)
      this.#held = larger
    }
    piece.copy(this.#held, this.length)
    this.length = needed
  }

  /** The whole line; what comes after it starts afresh. */
  finish(last: Buffer): Buffer {
    if (this.length === 0) return last
    this.push(last)
    const line = this.#held.subarray(0, this.length)
    this.#held = Buffer.alloc(0)
    this.length = 0
    return line
  }
}
