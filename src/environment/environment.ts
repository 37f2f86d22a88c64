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
  /** Open an episode from a validated reset request. */
  open(request: Record<string, unknown>): Promise<Episode>
}
