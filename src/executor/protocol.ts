/**
 * The frames between the service and a worker, one JSON object per line.
 *
 * A worker runs agent code in its own process, so every frame it writes is
 * untrusted input: it is parsed here once, and nothing past this module sees
 * raw JSON. The other half is `python/worker/protocol.py`.
 */

import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import type { InstrumentCall } from './executor.ts'

/** Both halves must agree; `ready` carries it and a mismatch ends the worker. */
export const PROTOCOL_VERSION = 2

/** Longest line a worker may write, in bytes. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024
/** Bytes and lines a worker may write from one cell to the next: no cell needs them, only a flood does. */
export const MAX_CELL_BYTES = 256 * 1024 * 1024
export const MAX_CELL_FRAMES = 50_000
/** A line may be long because a text in it is; what stalls a parser is structure, so this much of it is taken. */
const MAX_STRUCTURE = 500_000
/** Shorter lines can't hold enough structure to matter. */
const SHORT_LINE_BYTES = 512 * 1024

const id = z.int().nonnegative()
const attested = z.union([z.boolean(), z.string().max(1000), z.number()])
const name = z.string().max(400)
/** Final answers: 8 Mi characters, each of which may take two code units. */
const answer = z.string().max(16 * 1024 * 1024)
const names = z.array(name).max(10_000)

/** A record with at most `most` entries. */
const few = <Value extends z.ZodType>(value: Value, most: number) =>
  z.record(z.string().max(400), value).refine(record => Object.keys(record).length <= most, `more than ${most} entries`)

/** What a worker may write. Bounds are those that `python/worker` keeps to by itself. */
export const WorkerFrame = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('ready'),
    protocol: z.literal(PROTOCOL_VERSION),
    attestation: few(attested, 100).describe('What the worker tried inside its sandbox, and whether it was refused.'),
  }),
  z.strictObject({ type: z.literal('opened'), id, variables: names }),
  z.strictObject({ type: z.literal('final'), id, value: answer }),
  z.strictObject({ type: z.literal('call'), id, call: id, name, arguments: few(z.unknown(), 20) }),
  z.strictObject({ type: z.literal('value'), id, value: answer.nullable() }),
  z.strictObject({
    type: z.literal('result'),
    id,
    exception: z.string().max(100_000).nullable(),
    interrupted: z.boolean(),
    locals: few(z.string().max(2000), 200),
    variables: names,
    answer: z.strictObject({ ready: z.boolean(), content: answer }).nullable(),
    report: few(z.unknown(), 1000).nullable().describe('What the instrument of the cell wrote.'),
  }),
])
export type WorkerFrame = z.infer<typeof WorkerFrame>
export type ResultFrame = Extract<WorkerFrame, { type: 'result' }>
export type CallFrame = Extract<WorkerFrame, { type: 'call' }>

/** What the service may send to a worker. */
export type ServiceFrame =
  | {
      type: 'open'
      id: number
      variables: Record<string, string>
      files: Record<string, string>
      endings: boolean
      call_helpers: string[]
      seed: number | null
      threads: number
    }
  | { type: 'run'; id: number; code: string; instrument: InstrumentCall | null; fresh: boolean }
  | { type: 'interrupt'; id: number; cause: string }
  | { type: 'lookup'; id: number; names: string[] }
  | { type: 'reply'; call: number; value: unknown; error: string | null }

/**
 * Parse one line from a worker.
 *
 * @param line One line, without its newline; `onLines` has bounded its length.
 * @returns The frame. Unknown keys and unknown types are refused, not dropped.
 * @throws {ServiceError} `protocol_violation` if the line is not a frame of this protocol version.
 */
export function parseWorkerFrame(line: Buffer): WorkerFrame {
  if (line.length > SHORT_LINE_BYTES && structureOf(line) > MAX_STRUCTURE) {
    throw new ServiceError('protocol_violation', 'the worker wrote a frame with more structure than any frame has')
  }
  try {
    return WorkerFrame.parse(JSON.parse(line.toString('utf8')))
  } catch (cause) {
    throw new ServiceError('protocol_violation', 'the worker wrote a line that is not a frame', { cause })
  }
}

/** Opening brackets and braces in a line, those within texts included. */
function structureOf(line: Buffer): number {
  let count = 0
  for (const mark of [0x5b, 0x7b]) {
    for (let at = line.indexOf(mark); at !== -1 && count <= MAX_STRUCTURE; at = line.indexOf(mark, at + 1)) count++
  }
  return count
}
