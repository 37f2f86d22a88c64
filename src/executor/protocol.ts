/**
 * The frames between the service and a worker, one JSON object per line.
 *
 * A worker runs agent code in its own process, so every frame it writes is
 * untrusted input: it is parsed here once, and nothing past this module sees
 * raw JSON. The other half is `python/worker/protocol.py`.
 */

import { z } from 'zod'
import { ServiceError } from '../errors.ts'

/** Both halves must agree; `ready` carries it and a mismatch ends the worker. */
export const PROTOCOL_VERSION = 1

/** Longest line a worker may write, in bytes. */
export const MAX_FRAME_BYTES = 64 * 1024 * 1024

const id = z.int().nonnegative()
const attested = z.union([z.boolean(), z.string(), z.number()])

export const WorkerFrame = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('ready'),
    protocol: z.literal(PROTOCOL_VERSION),
    attestation: z
      .record(z.string(), attested)
      .describe('What the worker tried inside its sandbox, and whether it was refused.'),
  }),
  z.strictObject({ type: z.literal('opened'), id, variables: z.array(z.string()) }),
  z.strictObject({ type: z.literal('final'), id, value: z.string() }),
  z.strictObject({
    type: z.literal('call'),
    id,
    call: id,
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({ type: z.literal('value'), id, value: z.string().nullable() }),
  z.strictObject({
    type: z.literal('result'),
    id,
    exception: z.string().nullable(),
    interrupted: z.boolean(),
    locals: z.record(z.string(), z.string()),
    variables: z.array(z.string()),
    answer: z.strictObject({ ready: z.boolean(), content: z.string() }).nullable(),
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
      call_helpers: string[]
      seed: number | null
      threads: number
    }
  | { type: 'run'; id: number; code: string; limit_s: number }
  | { type: 'interrupt'; id: number }
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
  try {
    return WorkerFrame.parse(JSON.parse(line.toString('utf8')))
  } catch (cause) {
    throw new ServiceError('protocol_violation', 'the worker wrote a line that is not a frame', { cause })
  }
}
