/** What all routes of one environment share, at its prefix and at the root alike. */

import type { FastifyBaseLogger } from 'fastify'
import { z } from 'zod'
import type { Environment } from '../environment/environment.ts'
import { episodeIdField, laxInt } from '../environment/fields.ts'
import { type JsonSchema, toJsonSchema } from '../environment/json-schema.ts'
import type { SessionTable } from '../environment/sessions.ts'
import { HttpEpisodes } from './http-episodes.ts'
import { SocketClaims } from './socket-claims.ts'

export type ServerMode = 'simulation' | 'production'

export type EnvironmentEdge = {
  environment: Environment
  sessions: SessionTable
  episodes: HttpEpisodes
  claims: SocketClaims
  mode: ServerMode
  /** Failures that are nobody's input end up here, without agent code. */
  log: FastifyBaseLogger
  /** A reset over HTTP: the environment's own keys, with the bounds that only HTTP puts on `seed`. */
  httpResetSchema: z.ZodObject
  /** The three schemas of `GET /schema`. */
  schemas: SchemaSet
}

export type SchemaSet = { action: JsonSchema; observation: JsonSchema; state: JsonSchema }

/** The state every environment answers over HTTP; environments add fields of their own on a WebSocket. */
export const BaseState = z.looseObject({
  episode_id: z.string().nullable().default(null).describe('Id of the current episode.'),
  step_count: z.int().min(0).default(0).describe('Steps taken since the reset.'),
})

/** What clients that check a reply against `/schema` expect beside an environment's own observation fields. */
const PublishedFields = z.looseObject({
  reward: z.number().nullable().optional(),
  done: z.boolean().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
})

/** Build what the routes of one environment share. JSON Schemas are generated here, once. */
export function createEdge(
  environment: Environment,
  sessions: SessionTable,
  mode: ServerMode,
  log: FastifyBaseLogger,
): EnvironmentEdge {
  return {
    environment,
    sessions,
    episodes: new HttpEpisodes(sessions, environment),
    claims: new SocketClaims(),
    mode,
    log: log.child({ environment: environment.name }),
    httpResetSchema: environment.resetSchema.extend({
      seed: laxInt({ min: 0 }).nullish().describe('Seed of the episode, at least 0.'),
      episode_id: episodeIdField(),
    }),
    schemas: {
      action: toJsonSchema(environment.actionSchema, 'input'),
      observation: toJsonSchema(PublishedFields.extend(environment.observationSchema.shape).loose(), 'output'),
      state: toJsonSchema(BaseState, 'output'),
    },
  }
}
