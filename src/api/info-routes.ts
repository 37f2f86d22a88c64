/** What a client may ask before it has an episode: health, metadata, schemas. */

import type { FastifyInstance } from 'fastify'
import type { EnvironmentEdge } from './environment-edge.ts'
import { sendJson } from './http-fault.ts'

/** How the service is; `unhealthy` means that no episode could start now. */
export type Health = {
  status: 'healthy' | 'degraded' | 'unhealthy'
  /** Facts for an operator; printed by `GET /health/details` only. */
  details: Record<string, unknown>
}

/** Register `/health`, `/health/details`, `/metadata` and `/schema`. */
export function registerInfoRoutes(app: FastifyInstance, edge: EnvironmentEdge, health: () => Health): void {
  const { environment, sessions } = edge

  app.get('/health', (_request, reply) => {
    const { status } = health()
    return sendJson(reply, { status }, status === 'unhealthy' ? 503 : 200)
  })

  app.get('/health/details', (_request, reply) => {
    const { status, details } = health()
    return sendJson(reply, {
      status,
      environment: environment.name,
      mode: edge.mode,
      sessions: { active: sessions.active, max: sessions.capacity, http_episodes: edge.episodes.size },
      ...details,
    })
  })

  app.get('/metadata', (_request, reply) => {
    const { name, description, readme_content, version, author, documentation_url } = environment.metadata
    return sendJson(reply, { name, description, readme_content, version, author, documentation_url })
  })

  app.get('/schema', (_request, reply) => sendJson(reply, edge.schemas))
}
