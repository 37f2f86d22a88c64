/** `/mcp`: OpenEnv's JSON-RPC over POST and WebSocket, and the full MCP on the same path. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bodyBytes } from './body.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import type { Heartbeat } from './heartbeat.ts'
import { sendJson, sendJsonText } from './http-fault.ts'
import { decodeUtf8, isJsonObject, readJson, toJson } from './json.ts'
import { answerRpcText, answerRpcValue, rpcError } from './mcp-rpc.ts'
import type { StreamableMcp } from './mcp-streamable.ts'
import { CLOSE } from './socket-pump.ts'
import { type SocketProtocol, serveSession } from './socket-session.ts'
import { RPC } from './status.ts'

/** Register `/mcp` for one environment. */
export function registerMcpRoutes(
  app: FastifyInstance,
  edge: EnvironmentEdge,
  heartbeat: Heartbeat,
  streamable: StreamableMcp,
): void {
  app.post('/mcp', async (request, reply) => {
    if (speaksStreamableHttp(request)) return streamable.handle(request, reply)
    const body = await answerRpcText(edge, decodeUtf8(bodyBytes(request)))
    return sendJsonText(reply, body)
  })

  app.delete('/mcp', async (request, reply) =>
    speaksStreamableHttp(request) ? streamable.handle(request, reply) : postOnly(reply),
  )

  const protocol = createMcpSocketProtocol(edge)
  app.route({
    method: 'GET',
    url: '/mcp',
    handler: async (request, reply) =>
      speaksStreamableHttp(request) ? streamable.handle(request, reply) : postOnly(reply),
    wsHandler: (socket, request) => serveSession(socket, request, edge, heartbeat, protocol),
  })
}

/**
 * MCP clients must accept an event stream and name their session once they
 * have one; clients of OpenEnv's JSON-RPC do neither.
 */
function speaksStreamableHttp(request: FastifyRequest): boolean {
  if (request.headers['mcp-session-id'] !== undefined) return true
  return (request.headers.accept ?? '').toLowerCase().includes('text/event-stream')
}

function postOnly(reply: FastifyReply): FastifyReply {
  return sendJson(reply.header('allow', 'POST'), { detail: 'Method Not Allowed' }, 405)
}

/** Bad JSON and bad requests keep the socket; JSON that is not an object ends it. */
function createMcpSocketProtocol(edge: EnvironmentEdge): SocketProtocol {
  return {
    refusal: ({ message, facts }) =>
      toJson(rpcError(null, RPC.server, message, facts ?? { factory_name: edge.environment.name })),
    onBinary: async (_session, pump) => {
      await pump.send(toJson(rpcError(null, RPC.server, 'Binary frames are not part of this protocol')))
      pump.end(CLOSE.normal)
    },
    onText: async (text, session, pump) => {
      const reading = readJson(text)
      if (reading.kind !== 'value') {
        const why = reading.kind === 'malformed' ? reading.fault.message : 'nested too deep'
        return pump.send(toJson(rpcError(null, RPC.parseError, `Parse error: ${why}`)))
      }
      if (isJsonObject(reading.value)) {
        return pump.send(toJson(await answerRpcValue(edge, reading.value, session)))
      }
      await pump.send(toJson(rpcError(null, RPC.server, 'A frame must be a JSON object')))
      pump.end(CLOSE.normal)
    },
  }
}
