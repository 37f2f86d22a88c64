/** Requests that an environment answers beside its episodes: each checked, handled and sent like those of the edge. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { EnvironmentRoute } from '../environment/environment.ts'
import { readBodyObject } from './body.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { sendJson, unprocessable } from './http-fault.ts'
import { inTime } from './in-time.ts'
import { check } from './validation.ts'

/** Paths that exist where episodes can be played over plain HTTP. */
const EPISODE_PATHS = ['/reset', '/step', '/state']

/** The routes that an environment has in the mode of the service. */
export function routesOf({ environment, mode }: EnvironmentEdge): EnvironmentRoute[] {
  const routes = environment.routes ?? []
  return routes.filter(({ path }) => mode === 'simulation' || !EPISODE_PATHS.includes(path))
}

/** Register the routes of one environment, at one of its prefixes. */
export function registerEnvironmentRoutes(app: FastifyInstance, edge: EnvironmentEdge): void {
  for (const route of routesOf(edge)) {
    app.route({
      method: route.method,
      url: route.path,
      handler: (request, reply) => answer(route, request, reply),
    })
  }
}

async function answer(route: EnvironmentRoute, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const isGet = route.method === 'GET'
  const given = isGet ? request.query : (readBodyObject(request, true) ?? {})
  const checked = check(route.input, given, { loc: [isGet ? 'query' : 'body'] })
  if (!checked.ok) throw unprocessable(checked.items)
  return sendJson(reply, await inTime(route.handle(checked.value)))
}
