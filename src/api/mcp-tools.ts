/** The actions of an episode as tools: listing them, and calling one on a session. */

import type { Environment, EpisodeTool } from '../environment/environment.ts'
import { type JsonSchema, toJsonSchema } from '../environment/json-schema.ts'
import type { Session } from '../environment/sessions.ts'
import { type Envelope, toEnvelope } from './envelope.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { isJsonObject, toJson } from './json.ts'
import { toFailure } from './status.ts'
import { check, type ErrorItem } from './validation.ts'

/** A tool as `tools/list` shows it. */
export type ListedTool = { name: string; description: string; inputSchema: JsonSchema }

export type ToolCall =
  | { kind: 'result'; envelope: Envelope }
  | { kind: 'unknown_tool'; message: string }
  | { kind: 'invalid_arguments'; message: string; items: ErrorItem[] }

/** What a call gives back: MCP's own keys, and `data`, which clients of OpenEnv hand to their caller. */
export type ToolResult = {
  content: { type: 'text'; text: string }[]
  structuredContent: Envelope
  data: Envelope['observation']
  isError: false
}

/** The result of a call that was performed, whatever the agent's code did. */
export function toToolResult(envelope: Envelope): ToolResult {
  return {
    content: [{ type: 'text', text: toJson(envelope) }],
    structuredContent: envelope,
    data: envelope.observation,
    isError: false,
  }
}

const listed = new WeakMap<Environment, ListedTool[]>()
const firstResets = new WeakMap<Session, Promise<unknown>>()

/** The tools of an environment; generated once. */
export function listTools(environment: Environment): ListedTool[] {
  const known = listed.get(environment)
  if (known !== undefined) return known
  const tools = environment.tools.map(tool => ({
    name: tool.name,
    description: tool.description,
    inputSchema: toJsonSchema(tool.input, 'input'),
  }))
  listed.set(environment, tools)
  return tools
}

/**
 * Call a tool on a session. A session that was never reset is reset with defaults first.
 *
 * @throws whatever the environment throws.
 */
export async function callTool(session: Session, name: string, given: Record<string, unknown>): Promise<ToolCall> {
  const { environment } = session
  const tool = environment.tools.find(candidate => candidate.name === name)
  if (tool === undefined) return unknownTool(environment.tools, name)
  const input = check(tool.input, given)
  if (!input.ok) return invalidArguments(name, input.items)
  const action = check(environment.actionSchema, tool.toAction(input.value))
  if (!action.ok) return invalidArguments(name, action.items)
  await ensureEpisode(session)
  const id = session.episodeId
  return { kind: 'result', envelope: toEnvelope(await session.step(action.value, {}), id) }
}

/** Reset with defaults unless there is an episode; calls that come together share one reset. */
async function ensureEpisode(session: Session): Promise<void> {
  const running = firstResets.get(session)
  if (running !== undefined) await running
  if (session.episodeId !== null) return
  const reset = session.reset(session.environment.resetSchema.parse({}))
  firstResets.set(session, reset)
  try {
    await reset
  } finally {
    firstResets.delete(session)
  }
}

/**
 * Recognise the step payloads of MCP tool clients, `{"type":"list_tools"}` and `{"type":"call_tool",…}`.
 *
 * @returns What to do with the session, or null when the payload is an ordinary action.
 */
export function toolStep(
  edge: EnvironmentEdge,
  data: Record<string, unknown>,
): ((session: Session) => Promise<unknown>) | null {
  const { environment } = edge
  // An environment whose own actions have a `type` keeps the word for itself.
  if ('type' in environment.actionSchema.shape) return null
  if (data.type === 'list_tools') {
    return async session => observe(session, { tools: listTools(environment).map(toClientTool) })
  }
  if (data.type !== 'call_tool') return null
  const name = typeof data.tool_name === 'string' ? data.tool_name : ''
  return async session => {
    if (data.arguments !== undefined && !isJsonObject(data.arguments)) {
      return observe(session, toolFault(name, 'invalid_args', 'arguments must be an object'))
    }
    try {
      const call = await callTool(session, name, data.arguments ?? {})
      if (call.kind === 'unknown_tool') return observe(session, toolFault(name, 'tool_not_found', call.message))
      if (call.kind === 'invalid_arguments') return observe(session, toolFault(name, 'invalid_args', call.message))
      const { reward, done, metadata } = call.envelope
      const result = toToolResult(call.envelope)
      return { observation: { tool_name: name, result, error: null, metadata }, reward, done, metadata }
    } catch (error) {
      return observe(session, toolFault(name, 'execution_error', toFailure(error).message))
    }
  }
}

function observe(session: Session, observation: Record<string, unknown>) {
  const metadata = { episode_id: session.episodeId }
  return { observation: { ...observation, metadata }, reward: null, done: false, metadata }
}

const toolFault = (name: string, type: string, message: string) => ({
  tool_name: name,
  result: null,
  error: { error_type: type, message },
})

const toClientTool = ({ name, description, inputSchema }: ListedTool) => ({
  name,
  description,
  input_schema: inputSchema,
  inputSchema,
})

function unknownTool(tools: EpisodeTool[], name: string): ToolCall {
  const names = tools.map(tool => tool.name).join(', ')
  return { kind: 'unknown_tool', message: `Tool not found: ${name}. Tools here: ${names}` }
}

function invalidArguments(name: string, items: ErrorItem[]): ToolCall {
  const faults = items.map(item => `${item.loc.join('.') || 'arguments'}: ${item.msg}`).join('; ')
  return { kind: 'invalid_arguments', message: `Invalid arguments for tool ${name}: ${faults}`, items }
}
