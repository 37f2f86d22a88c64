/** Full MCP over streamable HTTP: which connection a request belongs to, and when connections end. */

import type { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Session } from '../environment/sessions.ts'
import { bodyBytes } from './body.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { sendJson, sendJsonText } from './http-fault.ts'
import { decodeUtf8, isJsonObject, readJson } from './json.ts'
import { answerRpcText, RpcId, rpcError } from './mcp-rpc.ts'
import { RPC, toFailure } from './status.ts'

/** Error code that MCP implementations use for an unknown session. */
const SESSION_NOT_FOUND = -32001

/** The MCP connections of one environment. Each holds one session, hence one slot. */
export class StreamableMcp {
  readonly #edge: EnvironmentEdge
  readonly #transports = new Map<string, StreamableHTTPServerTransport>()

  constructor(edge: EnvironmentEdge) {
    this.#edge = edge
  }

  /**
   * Serve one request of an MCP client: of the connection its `mcp-session-id`
   * names, or the `initialize` that opens one. A call without either gets the
   * plain JSON-RPC answer, on a throw-away session.
   */
  async handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const named = request.headers['mcp-session-id']
    if (request.method !== 'POST') {
      const transport = this.#named(named)
      return transport === undefined ? unknownConnection(reply, named) : forward(transport, request, reply, undefined)
    }
    const text = decodeUtf8(bodyBytes(request))
    const reading = text === null ? null : readJson(text)
    if (reading?.kind !== 'value') return sendJson(reply, rpcError(null, RPC.parseError, 'Parse error'), 400)
    if (named !== undefined) {
      const transport = this.#named(named)
      return transport === undefined
        ? unknownConnection(reply, named)
        : forward(transport, request, reply, reading.value)
    }
    const { value } = reading
    if (!isJsonObject(value) || value.method !== 'initialize') {
      return sendJsonText(reply, await answerRpcText(this.#edge, text))
    }
    return this.#initialize(request, reply, value)
  }

  /** End every connection. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#transports.values()].map(transport => transport.close()))
  }

  #named(id: string | string[] | undefined): StreamableHTTPServerTransport | undefined {
    return typeof id === 'string' ? this.#transports.get(id) : undefined
  }

  async #initialize(
    request: FastifyRequest,
    reply: FastifyReply,
    message: Record<string, unknown>,
  ): Promise<FastifyReply> {
    let session: Session
    try {
      session = this.#edge.sessions.open(this.#edge.environment.name)
    } catch (error) {
      const { rpc, message: why, facts, code, retry } = toFailure(error)
      return sendJson(reply, rpcError(toId(message.id), rpc, why, facts ?? { failure: code, retry }))
    }
    const { connectMcpServer } = await import('./mcp-server.ts')
    const transport = await connectMcpServer(session, id => this.#transports.set(id, transport))
    session.onClose(() => {
      this.#transports.delete(session.id)
      transport.close().catch((error: unknown) => request.log.warn({ err: error }, 'MCP connection did not close'))
    })
    const endSession = transport.onclose
    transport.onclose = () => {
      endSession?.()
      session.close('client')
    }
    await forward(transport, request, reply, message)
    // A handshake the SDK refused never became a connection.
    if (!this.#transports.has(session.id)) session.close('client')
    return reply
  }
}

/** Hand the raw request over: the SDK writes the reply itself. */
async function forward(
  transport: StreamableHTTPServerTransport,
  request: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
): Promise<FastifyReply> {
  reply.hijack()
  await transport.handleRequest(request.raw, reply.raw, body)
  return reply
}

function unknownConnection(reply: FastifyReply, named: unknown): FastifyReply {
  if (named === undefined) {
    return sendJson(reply, rpcError(null, RPC.invalidRequest, 'mcp-session-id is required: initialize first'), 400)
  }
  return sendJson(reply, rpcError(null, SESSION_NOT_FOUND, 'Session not found: initialize again'), 404)
}

function toId(given: unknown): RpcId {
  return RpcId.safeParse(given).data ?? null
}
