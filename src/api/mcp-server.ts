/**
 * An official MCP server in front of one session: the actions of its episode as tools.
 *
 * The SDK takes long to load, so this module is imported on the first handshake only.
 */

import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js'
import type { Environment } from '../environment/environment.ts'
import { toJsonSchema } from '../environment/json-schema.ts'
import type { Session } from '../environment/sessions.ts'
import { toEnvelope } from './envelope.ts'
import { inTime } from './in-time.ts'
import { toJson } from './json.ts'
import { callTool, listTools } from './mcp-tools.ts'
import { toFailure } from './status.ts'
import { check, type ErrorItem } from './validation.ts'

/** `reset` alone is a reserved word of OpenEnv. */
const RESET_TOOL = 'reset_episode'

/**
 * Serve MCP over streamable HTTP for one session.
 *
 * @param onReady Called with the id that the handshake gave the connection.
 * @returns The transport that HTTP requests are handed to.
 */
export async function connectMcpServer(
  session: Session,
  onReady: (connectionId: string) => void,
): Promise<StreamableHTTPServerTransport> {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => session.id,
    onsessioninitialized: onReady,
    enableJsonResponse: true,
  })
  // The SDK's own class declares its callbacks wider than its interface does.
  await createServer(session).connect(transport as Transport)
  return transport
}

function createServer(session: Session): Server {
  const { metadata } = session.environment
  const server = new Server(
    { name: metadata.name, version: metadata.version },
    { capabilities: { tools: {} }, instructions: metadata.description },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => {
    session.touch()
    return { tools: [...listTools(session.environment), resetTool(session.environment)].map(toMcpTool) }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    try {
      return await inTime(call(session, params.name, params.arguments ?? {}))
    } catch (error) {
      if (error instanceof McpError) throw error
      const { rpc, message, code, retry } = toFailure(error)
      throw new McpError(rpc, message, { failure: code, retry })
    }
  })
  return server
}

async function call(session: Session, name: string, given: Record<string, unknown>): Promise<CallToolResult> {
  if (name === RESET_TOOL) {
    const request = check(session.environment.resetSchema, given)
    if (!request.ok) return refused(request.items)
    const result = await session.reset(request.value)
    return toResult(toEnvelope(result, session.episodeId))
  }
  const outcome = await callTool(session, name, given)
  if (outcome.kind === 'unknown_tool') throw new McpError(ErrorCode.InvalidParams, outcome.message)
  if (outcome.kind === 'invalid_arguments') return refused(outcome.items)
  return toResult(outcome.envelope)
}

function toResult(envelope: object): CallToolResult {
  const text = toJson(envelope)
  // Parsed back, so that NaN and lone surrogates are as harmless here as in the text.
  return { content: [{ type: 'text', text }], structuredContent: JSON.parse(text) }
}

/** Wrong arguments are for the model to read and correct, so they are a result and not a protocol error. */
function refused(items: ErrorItem[]): CallToolResult {
  const faults = items.map(item => `${item.loc.join('.') || 'arguments'}: ${item.msg}`)
  return { content: [{ type: 'text', text: `Invalid arguments: ${faults.join('; ')}` }], isError: true }
}

const resetTool = (environment: Environment) => ({
  name: RESET_TOOL,
  description: 'End the current episode and start another.',
  inputSchema: toJsonSchema(environment.resetSchema, 'input'),
})

const toMcpTool = ({ name, description, inputSchema }: ReturnType<typeof resetTool>) => ({
  name,
  description,
  inputSchema: { ...inputSchema, type: 'object' as const },
})
