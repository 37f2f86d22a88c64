/** The JSON-RPC that OpenEnv calls MCP: tools and session handles, without a handshake. */

import { z } from 'zod'
import type { Session } from '../environment/sessions.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { inTime } from './in-time.ts'
import { isJsonObject, readJson, toJson } from './json.ts'
import { callTool, listTools, type ToolCall, type ToolResult, toToolResult } from './mcp-tools.ts'
import { RPC, toFailure } from './status.ts'
import { check } from './validation.ts'

/** What may name a request. */
export const RpcId = z.union([z.string(), z.int()]).nullable()
export type RpcId = z.infer<typeof RpcId>

/** Other keys are invalid. */
export const RpcRequest = z.strictObject({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
  id: RpcId.default(null),
})
type Params = z.output<typeof RpcRequest>['params']

export type RpcResponse =
  | { jsonrpc: '2.0'; id: RpcId; result: unknown }
  | { jsonrpc: '2.0'; id: RpcId; error: { code: number; message: string; data: unknown } }

/** Ends a request with an error of the protocol. */
class RpcFault extends Error {
  override readonly name = 'RpcFault'
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data: unknown = null) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** The error response to a request; `data` is sent also when null. */
export function rpcError(id: RpcId, code: number, message: string, data: unknown = null): RpcResponse {
  return { jsonrpc: '2.0', id, error: { code, message, data } }
}

/** Answer the text of an HTTP body; everything but an object is a parse error there. */
export async function answerRpcText(edge: EnvironmentEdge, text: string | null): Promise<string> {
  const reading = text === null ? null : readJson(text)
  if (reading?.kind !== 'value' || !isJsonObject(reading.value)) {
    return toJson(rpcError(null, RPC.parseError, 'Parse error'))
  }
  return toJson(await answerRpcValue(edge, reading.value, null))
}

/**
 * Answer one parsed request. Never throws.
 *
 * @param own The session of the socket that the request came through; null over HTTP.
 */
export async function answerRpcValue(edge: EnvironmentEdge, value: unknown, own: Session | null): Promise<RpcResponse> {
  const request = check(RpcRequest, value)
  if (!request.ok) {
    const faults = request.items.map(item => `${item.loc.join('.') || 'request'}: ${item.msg}`).join('; ')
    return rpcError(null, RPC.invalidRequest, `Invalid request: ${faults}`)
  }
  const { id, method, params } = request.value
  try {
    const result = await inTime(Promise.resolve(dispatch(edge, method, params, own)))
    // Fails here, with an answer, when an environment made something that can't be sent.
    toJson(result)
    return { jsonrpc: '2.0', id, result }
  } catch (error) {
    if (error instanceof RpcFault) return rpcError(id, error.code, error.message, error.data)
    const { rpc, message, code, retry, facts } = toFailure(error)
    if (code === 'internal') edge.log.error({ err: error, method }, 'JSON-RPC request failed')
    return rpcError(id, rpc, message, facts ?? (code === 'internal' ? null : { failure: code, retry }))
  }
}

function dispatch(edge: EnvironmentEdge, method: string, params: Params, own: Session | null): unknown {
  switch (method) {
    case 'openenv/session/create':
      return { session_id: (own ?? edge.sessions.open(edge.environment.name)).id }
    case 'openenv/session/close':
      return closeSession(edge, params, own)
    case 'tools/list':
      own?.touch()
      if (own === null && params.session_id) findSession(edge, params.session_id).touch()
      return { tools: listTools(edge.environment) }
    case 'tools/call':
      return callOnSession(edge, params, own)
    default:
      throw new RpcFault(RPC.methodNotFound, `Method not found: ${method}`)
  }
}

function closeSession(edge: EnvironmentEdge, params: Params, own: Session | null): unknown {
  const id = params.session_id
  if (!id) throw new RpcFault(RPC.invalidParams, "Invalid params - 'session_id' is required")
  if (own !== null && id === own.id) {
    throw new RpcFault(RPC.invalidRequest, 'The session of this WebSocket ends with the WebSocket; close that instead')
  }
  // A session that a socket is attached to ends when the socket does.
  return edge.claims.close(findSession(edge, id))
    ? { session_id: id, closed: true }
    : { session_id: id, closed: false, closing: true }
}

async function callOnSession(edge: EnvironmentEdge, params: Params, own: Session | null): Promise<unknown> {
  const { name, session_id: sessionId } = params
  const given = params.arguments ?? {}
  if (typeof name !== 'string' || name === '') throw new RpcFault(RPC.invalidParams, "Missing 'name' in params")
  if (!isJsonObject(given)) throw new RpcFault(RPC.invalidParams, "'arguments' must be an object")
  const held = own ?? (sessionId ? findSession(edge, sessionId) : null)
  if (held !== null) return toCallResult(await callTool(held, name, given))
  const throwAway = edge.sessions.open(edge.environment.name)
  try {
    return toCallResult(await callTool(throwAway, name, given))
  } finally {
    throwAway.close('client')
  }
}

/** A session of this environment by its own id; ids of episodes don't count here. */
function findSession(edge: EnvironmentEdge, id: unknown): Session {
  const session = typeof id === 'string' ? edge.sessions.find(id) : undefined
  if (session === undefined || session.id !== id || session.environment !== edge.environment) {
    throw new RpcFault(RPC.invalidParams, `Unknown session_id: ${typeof id === 'string' ? id : JSON.stringify(id)}`)
  }
  return session
}

function toCallResult(call: ToolCall): ToolResult {
  if (call.kind === 'unknown_tool') throw new RpcFault(RPC.invalidParams, call.message)
  if (call.kind === 'invalid_arguments') throw new RpcFault(RPC.invalidParams, call.message, { errors: call.items })
  return toToolResult(call.envelope)
}
