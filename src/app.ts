/**
 * The one place that puts the edge together. Knows no port and no process:
 * tests build it around environments of their own and inject requests.
 */

import fastifyWebsocket from '@fastify/websocket'
import Fastify, { type FastifyInstance, LogController } from 'fastify'
import { installBodyReading } from './api/body.ts'
import { registerDocsRoutes } from './api/docs-routes.ts'
import { createEdge, type EnvironmentEdge, type ServerMode } from './api/environment-edge.ts'
import { registerEnvironmentRoutes } from './api/environment-routes.ts'
import { registerEpisodeRoutes } from './api/episode-routes.ts'
import { Heartbeat } from './api/heartbeat.ts'
import { createErrorHandler, sendJson } from './api/http-fault.ts'
import { type Health, registerInfoRoutes } from './api/info-routes.ts'
import { registerMcpRoutes } from './api/mcp-routes.ts'
import { StreamableMcp } from './api/mcp-streamable.ts'
import { installNotFound } from './api/not-found.ts'
import { createSocketProtocol } from './api/socket.ts'
import { CLOSE } from './api/socket-pump.ts'
import { serveSession } from './api/socket-session.ts'
import { registerTaskRoutes } from './api/task-routes.ts'
import { registerWebRoutes } from './api/web-routes.ts'
import { WebVisit } from './api/web-visit.ts'
import { mib } from './config.ts'
import type { Environment } from './environment/environment.ts'
import type { SessionTable } from './environment/sessions.ts'
import { ServiceError } from './errors.ts'

/** Time that running steps have to be answered at shutdown, in milliseconds. */
const LAST_ANSWER_MS = 250
/** Time that peers have to answer a closing handshake at shutdown, in milliseconds. */
const CLOSING_GRACE_MS = 1000

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

export type AppOptions = {
  sessions: SessionTable
  environments: readonly Environment[]
  mode: ServerMode
  health: () => Health
  /** Largest request body and WebSocket frame, in MiB. */
  maxBodyMib: number
  /** Time between WebSocket pings, in milliseconds. */
  pingMs: number
  logLevel: LogLevel
  /** Where to serve the OpenEnv web interface and find its README; null leaves it out. */
  webInterface: { readmePath: string | undefined } | null
}

/**
 * Build the service's HTTP and WebSocket faces, one for each address. All of them serve every environment at its
 * prefix, and the same episodes; they differ in what they serve at the root.
 *
 * @param roots For each face the name of the environment at its root, and whatever the caller wants beside it.
 * @returns The same with their faces.
 * @throws {ServiceError} `invalid_config` when an environment named isn't among the environments.
 */
export async function buildApps<Root extends { environment: string }>(
  options: AppOptions,
  roots: readonly Root[],
): Promise<(Root & { app: FastifyInstance })[]> {
  const names = options.environments.map(({ name }) => name)
  const unknown = roots.find(({ environment }) => !names.includes(environment))
  if (unknown !== undefined) {
    const known = names.join(', ')
    throw new ServiceError('invalid_config', `there is no environment named ${unknown.environment}, only ${known}`)
  }
  const faces: (Root & { app: FastifyInstance })[] = []
  let parts: EnvironmentParts[] | undefined
  for (const root of roots) {
    const app = await createFace(options)
    parts ??= createParts(options, app)
    await registerEverything(app, options, parts, root.environment)
    faces.push({ ...root, app })
  }
  return faces
}

/** What the faces share for one environment. */
type EnvironmentParts = { edge: EnvironmentEdge; streamable: StreamableMcp; visit: WebVisit | null }

/** @param app The face whose log is used, and with which MCP sessions end. */
function createParts(options: AppOptions, app: FastifyInstance): EnvironmentParts[] {
  return options.environments.map(environment => {
    const edge = createEdge(environment, options.sessions, options.mode, app.log)
    const streamable = new StreamableMcp(edge)
    app.addHook('preClose', () => streamable.close())
    const visit = options.webInterface === null ? null : new WebVisit(edge, options.webInterface.readmePath)
    return { edge, streamable, visit }
  })
}

/** A face that answers nothing yet. */
async function createFace(options: AppOptions): Promise<FastifyInstance> {
  const bodyLimit = mib(options.maxBodyMib)
  const app = Fastify({
    bodyLimit,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 1024 },
    // A path that can't be decoded is a path that isn't there.
    frameworkErrors: (_error, _request, reply) => void sendJson(reply, { detail: 'Not Found' }, 404),
    // One line per request costs more than everything else the edge does.
    logController: new LogController({ disableRequestLogging: true }),
    logger: options.logLevel === 'silent' ? false : { level: options.logLevel, stream: process.stderr },
  })
  app.setErrorHandler(createErrorHandler(options.maxBodyMib))
  installBodyReading(app)
  installNotFound(app)
  await app.register(fastifyWebsocket, {
    options: { maxPayload: bodyLimit, perMessageDeflate: false },
    // Faults of the peer's framing: the library has already started to close with the code that says why.
    errorHandler: (error, socket, request) => {
      request.log.debug({ err: error }, 'WebSocket fault')
      if (socket.readyState === socket.OPEN) socket.terminate()
    },
    preClose: done => closeSockets(app, done),
  })
  return app
}

async function registerEverything(
  app: FastifyInstance,
  options: AppOptions,
  parts: EnvironmentParts[],
  root: string,
): Promise<void> {
  const heartbeat = new Heartbeat(options.pingMs)
  app.addHook('onClose', () => heartbeat.close())
  for (const part of parts) {
    const { name } = part.edge.environment
    const served = { ...part, heartbeat, health: options.health }
    for (const prefix of name === root ? ['', `/${name}`] : [`/${name}`]) {
      await app.register(async scope => registerEnvironment(scope, served, prefix), { prefix })
    }
  }
  const edges = parts.map(({ edge }) => edge)
  registerTaskRoutes(app, edges)
}

type Served = EnvironmentParts & { heartbeat: Heartbeat; health: () => Health }

/** Everything an environment answers, at one of its prefixes. */
function registerEnvironment(scope: FastifyInstance, served: Served, prefix: string): void {
  const { edge, streamable, visit, heartbeat, health } = served
  registerInfoRoutes(scope, edge, health)
  registerEnvironmentRoutes(scope, edge)
  if (edge.mode === 'simulation') registerEpisodeRoutes(scope, edge)
  registerMcpRoutes(scope, edge, heartbeat, streamable)
  registerDocsRoutes(scope, edge, prefix)
  if (visit !== null) registerWebRoutes(scope, edge, visit, heartbeat, prefix)
  const protocol = createSocketProtocol(edge)
  scope.route({
    method: 'GET',
    url: '/ws',
    config: { isUpgradeOnly: true },
    handler: (_request, reply) => sendJson(reply, { detail: 'Not Found' }, 404),
    wsHandler: (socket, request) => serveSession(socket, request, edge, heartbeat, protocol),
  })
}

/**
 * Sockets with a session close by themselves once the frame in hand is answered;
 * the others are asked to, and none is waited for longer than a moment.
 */
function closeSockets(app: FastifyInstance, done: () => void): void {
  for (const client of app.websocketServer.clients) {
    setTimeout(() => client.close(CLOSE.goingAway, 'shutdown'), LAST_ANSWER_MS).unref()
    setTimeout(() => client.terminate(), CLOSING_GRACE_MS).unref()
  }
  app.websocketServer.close()
  done()
}
