/** Bounded line splitting for the sockets and pipes between the service and Python. */

import type { Readable } from 'node:stream'
import { ServiceError } from '../errors.ts'

const NEWLINE = 0x0a

/**
 * Call back for each complete line of a stream, split on byte 0x0A only.
 *
 * Bytes after the last newline are dropped: a process that died mid-line has
 * not written a frame.
 *
 * @param maxLineBytes Longest line accepted, newline excluded; a longer one
 * ends the reading with `protocol_violation`, so memory held stays below that
 * plus one chunk.
 * @param onLine May throw; the error goes to `onError` and reading stops.
 */
export function onLines(
  source: Readable,
  maxLineBytes: number,
  onLine: (line: Buffer) => void,
  onError: (error: unknown) => void,
): void {
  let parts: Buffer[] = []
  let held = 0
  let stopped = false
  source.on('data', (chunk: Buffer) => {
    if (stopped) return
    try {
      let start = 0
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
        const rest = chunk.subarray(start, end)
        const line = parts.length === 0 ? rest : Buffer.concat([...parts, rest])
        parts = []
        held = 0
        start = end + 1
        onLine(line)
      }
      if (start === chunk.length) return
      parts.push(chunk.subarray(start))
      held += chunk.length - start
      if (held > maxLineBytes)
        throw new ServiceError('protocol_violation', `a line is longer than ${maxLineBytes} bytes`)
    } catch (error) {
      stopped = true
      parts = []
      onError(error)
    }
  })
}
