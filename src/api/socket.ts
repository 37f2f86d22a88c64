/** The OpenEnv WebSocket: reset, step, state, close and mcp frames on one session. */

import { z } from 'zod'
import type { StepOptions } from '../environment/environment.ts'
import { dict, laxNumber } from '../environment/fields.ts'
import type { Session } from '../environment/sessions.ts'
import { toEnvelope } from './envelope.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { actionEpisodeId } from './episode-routes.ts'
import { inTime } from './in-time.ts'
import { isJsonObject, readJson, toJson } from './json.ts'
import { answerRpcValue } from './mcp-rpc.ts'
import { toolStep } from './mcp-tools.ts'
import { CLOSE, type SocketPump } from './socket-pump.ts'
import type { SocketProtocol } from './socket-session.ts'
import { type Failure, type SocketCode, toFailure } from './status.ts'
import { check, type ErrorItem } from './validation.ts'

const FRAMES = {
  reset: z.strictObject({ type: z.literal('reset'), data: dict().default({}) }),
  step: z.strictObject({ type: z.literal('step'), data: dict(), timeout_s: laxNumber({ above: 0 }).nullish() }),
  state: z.strictObject({ type: z.literal('state') }),
  close: z.strictObject({ type: z.literal('close') }),
  mcp: z.strictObject({ type: z.literal('mcp'), data: dict() }),
}
type FrameType = keyof typeof FRAMES

/** A frame or an action of the wrong shape; the episode is not touched. */
class InvalidFrame extends Error {
  override readonly name = 'InvalidFrame'
  readonly items: ErrorItem[]

  constructor(items: ErrorItem[]) {
    // Clients show the message alone, and a value the environment doesn't know is for their user to correct.
    const values = items.filter(({ type }) => type === 'value_error').map(({ msg }) => msg)
    super(['Invalid message', ...values].join(': '))
    this.items = items
  }
}

/** The protocol of `/ws` for one environment. */
export function createSocketProtocol(edge: EnvironmentEdge): SocketProtocol {
  return {
    refusal: failure => failureFrame(failure, edge.environment.name),
    onBinary: (_session, pump) => endSession(pump, 'Binary frames are not part of this protocol; send text frames.'),
    onText: async (text, session, pump) => {
      const reading = readJson(text)
      if (reading.kind !== 'value') {
        const { message, offset } =
          reading.kind === 'malformed' ? reading.fault : { message: 'nested too deep', offset: 0 }
        return pump.send(errorFrame('INVALID_JSON', `Invalid JSON: ${message} (char ${offset})`))
      }
      if (!isJsonObject(reading.value)) {
        return endSession(pump, `A frame must be a JSON object, not ${kindOf(reading.value)}.`)
      }
      const frame = reading.value
      const type = Object.hasOwn(frame, 'type') ? frame.type : ''
      if (!isFrameType(type)) {
        const shown = typeof type === 'string' ? type : JSON.stringify(type)
        return pump.send(errorFrame('UNKNOWN_TYPE', `Unknown message type: ${shown.slice(0, 200)}`))
      }
      const reply = await answer(edge, session, type, frame)
      if (reply === null) pump.end(CLOSE.normal)
      else await pump.send(reply)
    },
  }
}

/** The reply to one frame, or null for a close frame. */
async function answer(
  edge: EnvironmentEdge,
  session: Session,
  type: FrameType,
  frame: Record<string, unknown>,
): Promise<string | null> {
  try {
    switch (type) {
      case 'reset': {
        const { data } = shaped(check(FRAMES.reset, frame))
        const request = shaped(check(edge.environment.resetSchema, data, { loc: ['data'] }))
        const result = await inTime(session.reset(request))
        return toJson({ type: 'observation', data: toEnvelope(result, session.episodeId) })
      }
      case 'step': {
        const { data, timeout_s } = shaped(check(FRAMES.step, frame))
        const options = { timeout_s: timeout_s ?? undefined }
        return toJson({ type: 'observation', data: await step(edge, session, data, options) })
      }
      case 'state':
        shaped(check(FRAMES.state, frame))
        return toJson({ type: 'state', data: await inTime(session.state()) })
      case 'mcp': {
        const { data } = shaped(check(FRAMES.mcp, frame))
        return toJson({ type: 'mcp', data: await answerRpcValue(edge, data, session) })
      }
      case 'close':
        shaped(check(FRAMES.close, frame))
        return null
    }
  } catch (error) {
    if (error instanceof InvalidFrame) return errorFrame('VALIDATION_ERROR', error.message, { errors: error.items })
    const failure = toFailure(error)
    if (failure.code === 'internal') edge.log.error({ err: error, frame: type }, 'frame failed')
    return failureFrame(failure, edge.environment.name)
  }
}

async function step(
  edge: EnvironmentEdge,
  session: Session,
  data: Record<string, unknown>,
  options: StepOptions,
): Promise<unknown> {
  const asTool = toolStep(edge, data)
  if (asTool !== null) return inTime(asTool(session))
  const { environment } = edge
  const action = shaped(check(environment.actionSchema, data, { url: true }))
  const named = actionEpisodeId(action)
  // A socket steps its own episode only, whatever other one an action names.
  if (named && named !== session.episodeId && environment.answerStray !== undefined) {
    session.touch()
    return toEnvelope(environment.answerStray(action, named), named)
  }
  return toEnvelope(await inTime(session.step(action, options)), session.episodeId)
}

function shaped<T>(checked: { ok: true; value: T } | { ok: false; items: ErrorItem[] }): T {
  if (checked.ok) return checked.value
  throw new InvalidFrame(checked.items)
}

async function endSession(pump: SocketPump, message: string): Promise<void> {
  await pump.send(errorFrame('SESSION_ERROR', message))
  pump.end(CLOSE.normal)
}

function failureFrame({ socket, message, code, retry, facts }: Failure, factoryName: string): string {
  const extra = socket === 'FACTORY_ERROR' ? { factory_name: factoryName } : { ...facts }
  return errorFrame(socket, message, code === 'capacity_reached' ? extra : { ...extra, failure: code, retry })
}

function errorFrame(code: SocketCode, message: string, extra: Record<string, unknown> = {}): string {
  return toJson({ type: 'error', data: { message, code, ...extra } })
}

function isFrameType(type: unknown): type is FrameType {
  return typeof type === 'string' && Object.hasOwn(FRAMES, type)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`
}
