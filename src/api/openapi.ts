/** The OpenAPI 3.1 document of one environment, made from the same schemas that check requests. */

import { z } from 'zod'
import type { EnvironmentRoute } from '../environment/environment.ts'
import { type JsonSchema, toJsonSchema } from '../environment/json-schema.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { routesOf } from './environment-routes.ts'
import { StepRequest } from './episode-routes.ts'
import { RpcRequest } from './mcp-rpc.ts'
import { SOCKET_DESCRIPTION } from './openapi-description.ts'

/** `openenv validate` reads the profile `openenv-http/1.x` from this. */
const API_VERSION = '1.0.0'

const ErrorDetail = z.object({
  detail: z.array(
    z.object({
      type: z.string(),
      loc: z.array(z.union([z.string(), z.int()])),
      msg: z.string(),
      input: z.unknown(),
      ctx: z.record(z.string(), z.unknown()).optional(),
      url: z.string().optional(),
    }),
  ),
})
const Refusal = z.looseObject({ detail: z.string(), code: z.string().optional(), retry: z.boolean().optional() })
const HealthReply = z.object({ status: z.enum(['healthy', 'unhealthy', 'degraded']) })
const MetadataReply = z.object({
  name: z.string(),
  description: z.string(),
  readme_content: z.string().nullable(),
  version: z.string(),
  author: z.string().nullable(),
  documentation_url: z.string().nullable(),
})

/** Build the document. @param prefix Where the environment is served; the paths don't repeat it. */
export function createOpenApi(edge: EnvironmentEdge, prefix: string): JsonSchema {
  const { environment, mode, schemas } = edge
  return {
    openapi: '3.1.0',
    info: {
      title: `${environment.metadata.name}: OpenEnv environment`,
      version: API_VERSION,
      description: `${environment.metadata.description}\n\n${SOCKET_DESCRIPTION}`,
    },
    servers: [{ url: prefix === '' ? '/' : prefix }],
    paths: withRoutes({ ...(mode === 'simulation' ? episodePaths() : {}), ...commonPaths() }, routesOf(edge)),
    components: {
      schemas: {
        Action: bare(schemas.action),
        Observation: bare(schemas.observation),
        State: bare(schemas.state),
        ResetRequest: bare(toJsonSchema(edge.httpResetSchema, 'input')),
        StepRequest: withAction(bare(toJsonSchema(StepRequest, 'input'))),
        StepResponse: {
          type: 'object',
          properties: {
            observation: ref('Observation'),
            reward: { type: ['number', 'null'] },
            done: { type: 'boolean' },
            metadata: { type: 'object', description: 'Also found in `observation.metadata`.' },
          },
          required: ['observation', 'reward', 'done', 'metadata'],
        },
        Metadata: bare(toJsonSchema(MetadataReply, 'output')),
        Health: bare(toJsonSchema(HealthReply, 'output')),
        Schemas: {
          type: 'object',
          properties: Object.fromEntries(Object.keys(schemas).map(name => [name, { type: 'object' }])),
          required: Object.keys(schemas),
        },
        RpcRequest: bare(toJsonSchema(RpcRequest, 'input')),
        RpcResponse: { type: 'object', required: ['jsonrpc', 'id'] },
        ValidationError: bare(toJsonSchema(ErrorDetail, 'output')),
        Refusal: bare(toJsonSchema(Refusal, 'output')),
      },
    },
  }
}

type Paths = Record<string, Record<string, unknown>>

/** Add what the environment answers by itself; a path may have another method already. */
function withRoutes(paths: Paths, routes: readonly EnvironmentRoute[]): Paths {
  const all = { ...paths }
  for (const { method, path, summary, input, reply } of routes) {
    const parts: OperationParts = { response: bare(toJsonSchema(reply, 'output')), errors: [422] }
    const given = bare(toJsonSchema(input, 'input'))
    if (method === 'GET') parts.parameters = toParameters(given)
    else parts.requestBody = { required: false, content: { 'application/json': { schema: given } } }
    all[path] = { ...all[path], [method.toLowerCase()]: operation('Environment', summary, '', parts) }
  }
  return all
}

function toParameters({ properties, required }: JsonSchema): unknown[] {
  const needed = Array.isArray(required) ? required : []
  return Object.entries(properties ?? {}).map(([name, schema]) => {
    return { name, in: 'query', required: needed.includes(name), schema }
  })
}

function episodePaths(): Paths {
  const id = { schema: { type: 'string', maxLength: 255 } }
  return {
    '/reset': {
      post: operation('Environment Control', 'Start an episode', 'StepResponse', {
        description: 'Opens an episode, or replaces the live one that `episode_id` or `x-episode-id` names.',
        requestBody: body('ResetRequest', false),
        errors: [422, 503],
      }),
    },
    '/step': {
      post: operation('Environment Control', 'Perform one action', 'StepResponse', {
        description:
          'The episode is named by `episode_id`, by the `x-episode-id` header or by the cookie of the reset, ' +
          'in this order; without any of them it is the only live one.',
        parameters: [{ name: 'x-episode-id', in: 'header', required: false, ...id }],
        requestBody: body('StepRequest', true),
        errors: [404, 409, 422, 503],
      }),
    },
    '/state': {
      get: operation('State Management', 'State of an episode', 'State', {
        description: 'Base fields; the whole state object with `full=true`. Without any episode, that of a fresh one.',
        parameters: [
          { name: 'episode_id', in: 'query', required: false, ...id },
          { name: 'full', in: 'query', required: false, schema: { type: 'string', enum: ['true'] } },
        ],
        errors: [404, 422],
      }),
    },
    '/episodes/{id}': {
      delete: operation('Environment Control', 'Close an episode', 'Refusal', {
        response: { type: 'object', properties: { episode_id: { type: 'string' }, closed: { const: true } } },
        parameters: [{ name: 'id', in: 'path', required: true, ...id }],
        errors: [404],
      }),
    },
  }
}

function commonPaths(): Paths {
  return {
    '/metadata': { get: operation('Environment Info', 'What this environment is', 'Metadata') },
    '/health': { get: operation('Health', 'Whether episodes can start', 'Health') },
    '/health/details': {
      get: operation('Health', 'Facts for an operator', 'Health', { response: { type: 'object' } }),
    },
    '/schema': { get: operation('Schema', 'JSON Schemas of action, observation and state', 'Schemas') },
    '/mcp': {
      post: operation('MCP', 'JSON-RPC 2.0: tools and sessions', 'RpcResponse', {
        description:
          'Answers 200 also for errors. MCP clients that send `initialize` and accept `text/event-stream` get the ' +
          'full MCP over streamable HTTP on this path.',
        requestBody: body('RpcRequest', true),
      }),
    },
  }
}

type OperationParts = {
  description?: string
  response?: JsonSchema
  parameters?: unknown[]
  requestBody?: unknown
  errors?: number[]
}

function operation(tag: string, summary: string, reply: string, parts: OperationParts = {}): JsonSchema {
  const { response, errors = [], ...rest } = parts
  return {
    tags: [tag],
    summary,
    ...rest,
    responses: {
      200: { description: 'Success', content: { 'application/json': { schema: response ?? ref(reply) } } },
      ...Object.fromEntries(errors.map(status => [status, refusal(status)])),
    },
  }
}

const ERROR_WORDS: Record<number, string> = {
  404: 'The episode is not live.',
  409: 'The episode has no reset behind it.',
  422: 'The request is invalid.',
  503: 'No slot or worker is free, or the service is closing.',
}

const refusal = (status: number) => ({
  description: ERROR_WORDS[status] ?? 'Error',
  content: { 'application/json': { schema: ref(status === 422 ? 'ValidationError' : 'Refusal') } },
})

const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const body = (name: string, required: boolean) => ({
  required,
  content: { 'application/json': { schema: ref(name) } },
})

/** A schema as a component: the dialect is that of the document. */
function bare(schema: JsonSchema): JsonSchema {
  const { $schema: _dialect, ...rest } = schema
  return rest
}

function withAction(schema: JsonSchema): JsonSchema {
  const properties = typeof schema.properties === 'object' ? schema.properties : {}
  return { ...schema, properties: { ...properties, action: ref('Action') } }
}
