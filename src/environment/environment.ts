/**
 * What an environment is: how an episode opens, steps and ends, and the schemas
 * from which validation, OpenAPI and the tool lists are made.
 *
 * The edge (HTTP, WebSocket, MCP) knows only this contract and `sessions.ts`.
 */

import type { z } from 'zod'

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue }
export type JsonObject = { [key: string]: JsonValue }

/** What `/metadata` answers; nulls are sent, not omitted. */
export type EnvironmentMetadata = {
  name: string
  description: string
  readme_content: string | null
  version: string
  author: string | null
  documentation_url: string | null
}

/**
 * The result of a reset or a step, on every transport.
 *
 * `observation` never holds `reward` or `done`; it does hold a copy of
 * `metadata`, because old clients read it there and new ones read the top level.
 */
export type StepResult = {
  observation: JsonObject
  reward: number | null
  done: boolean
  /** Never null. */
  metadata: JsonObject
}

export type StepOptions = {
  /** The caller's own limit for this step, in seconds; clamped to the configured ceiling. */
  timeout_s?: number | undefined
}

export interface Episode {
  readonly id: string
  /** What the reset answers. */
  readonly initial: StepResult
  /** Perform one validated action. Resolves for anything agent code does. Called one at a time. */
  step(action: unknown, options: StepOptions): Promise<StepResult>
  /** The environment's whole state object, as a WebSocket `state` frame sends it. */
  state(): JsonObject
  /** Release the worker. Returns at once; idempotent. */
  close(): void
}

/** One action of an episode as an MCP client or a model's function call sees it. */
export type EpisodeTool = {
  name: string
  description: string
  /** The tool's arguments; converted to JSON Schema for tool lists. */
  input: z.ZodObject
  /** Turn validated arguments into the action `Episode.step` takes. */
  toAction: (input: Record<string, unknown>) => unknown
}

/**
 * A request that an environment answers beside its episodes, such as a list of its tasks.
 *
 * The edge serves it below every prefix of the environment and shows it in OpenAPI. A path that
 * `production` mode leaves out (`/reset`, `/step`, `/state`) is left out here too.
 */
export type EnvironmentRoute = {
  method: 'GET' | 'POST'
  /** Below the prefix, e.g. `/tasks`; without parameters. */
  path: string
  /** One line for OpenAPI. */
  summary: string
  /** The query of a GET, the JSON object of a POST; no body counts as `{}`. */
  input: z.ZodObject
  /** What is answered; shown in OpenAPI and not enforced. */
  reply: z.ZodType
  /**
   * Answer a validated request.
   *
   * @throws {ServiceError} Sent with the status of its code.
   */
  handle: (input: Record<string, unknown>) => Promise<JsonObject>
}

export type TaskSplit = { name: string; type: 'train' | 'validation' | 'test' }

/** The tasks that an environment offers, for clients that choose them by split and index. */
export type TaskCatalogue = {
  splits: readonly TaskSplit[]
  /** Every task of a split, in a stable order; undefined for a split that doesn't exist. */
  tasks: (split: string) => JsonValue[] | undefined
}

export interface Environment {
  /** The path prefix, e.g. `repl`. */
  readonly name: string
  readonly metadata: EnvironmentMetadata
  /** Known reset keys; unknown keys are dropped before this sees them. */
  readonly resetSchema: z.ZodObject
  /** Unknown keys are invalid. */
  readonly actionSchema: z.ZodObject
  readonly observationSchema: z.ZodObject
  readonly stateSchema: z.ZodObject
  readonly tools: EpisodeTool[]
  /** Missing is none. */
  readonly routes?: readonly EnvironmentRoute[]
  /** Missing answers 501 to clients of the Task API. */
  readonly tasks?: TaskCatalogue
  /**
   * Answer a step that names no episode of its client: one that is over and gone, or never was.
   * Missing leaves it to the transport, which refuses such a step.
   *
   * @param action Validated by `actionSchema`.
   * @param episodeId What the client called it; empty when it named none.
   */
  readonly answerStray?: (action: unknown, episodeId: string) => StepResult
  /** Open an episode from a validated reset request. */
  open(request: Record<string, unknown>): Promise<Episode>
}
