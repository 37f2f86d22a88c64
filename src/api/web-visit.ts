/** The one episode that all visitors of the web interface share, and what they are shown of it. */

import { readFile } from 'node:fs/promises'
import type { WebSocket } from '@fastify/websocket'
import type { EnvironmentMetadata, JsonObject, StepResult } from '../environment/environment.ts'
import type { Session } from '../environment/sessions.ts'
import { type Envelope, toEnvelope } from './envelope.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { inTime } from './in-time.ts'
import { toJson } from './json.ts'

/** Actions kept for display. */
const MAX_ACTION_LOGS = 1000
/** Where a container puts the README of its environment. */
const CONTAINER_README = '/app/README.md'

type ActionLog = {
  timestamp: string
  action: Record<string, unknown>
  observation: JsonObject
  reward: number | null
  done: boolean
  step_count: number
}

type EpisodeState = {
  episode_id: string | null
  step_count: number
  current_observation: JsonObject | null
  action_logs: ActionLog[]
  is_reset: boolean
}

/** Holds a session from the first reset on; it is opened again when the table closed it. */
export class WebVisit {
  readonly #edge: EnvironmentEdge
  readonly #readmePath: string | undefined
  readonly #viewers = new Set<WebSocket>()
  #session: Session | null = null
  #shown: EpisodeState = {
    episode_id: null,
    step_count: 0,
    current_observation: null,
    action_logs: [],
    is_reset: true,
  }

  constructor(edge: EnvironmentEdge, readmePath: string | undefined) {
    this.#edge = edge
    this.#readmePath = readmePath
  }

  /** The live session, or null before the first reset. */
  get session(): Session | null {
    return this.#session
  }

  /** Show a viewer the episode now and after every change. */
  addViewer(socket: WebSocket): void {
    this.#viewers.add(socket)
    socket.on('close', () => this.#viewers.delete(socket))
    socket.send(this.#update())
  }

  async reset(request: Record<string, unknown>): Promise<Envelope> {
    const session = this.#session ?? this.#open()
    const result = await inTime(session.reset(request))
    return this.#show(session, result, 0, [], true)
  }

  /** @param given The action as the visitor sent it, for the log. */
  async step(session: Session, action: unknown, given: Record<string, unknown>): Promise<Envelope> {
    const result = await inTime(session.step(action, {}))
    const { step_count } = await session.state()
    const count = typeof step_count === 'number' ? step_count : this.#shown.step_count + 1
    const { metadata: _metadata, ...shownAction } = given
    const log: ActionLog = {
      timestamp: new Date().toISOString(),
      action: shownAction,
      observation: result.observation,
      reward: result.reward,
      done: result.done,
      step_count: count,
    }
    return this.#show(session, result, count, [...this.#shown.action_logs, log].slice(-MAX_ACTION_LOGS), false)
  }

  /** The environment's metadata, with the README of the container or of `ENV_README_PATH` where there is one. */
  async metadata(): Promise<EnvironmentMetadata> {
    const { metadata } = this.#edge.environment
    for (const path of [CONTAINER_README, this.#readmePath]) {
      if (path === undefined) continue
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null
        throw error
      })
      if (text !== null) return { ...metadata, readme_content: text }
    }
    return metadata
  }

  #open(): Session {
    const { sessions, environment } = this.#edge
    const session = sessions.open(environment.name)
    this.#session = session
    session.onClose(() => {
      if (this.#session === session) this.#session = null
    })
    return session
  }

  #show(session: Session, result: StepResult, count: number, logs: ActionLog[], isReset: boolean): Envelope {
    const envelope = toEnvelope(result, session.episodeId)
    this.#shown = {
      episode_id: session.episodeId,
      step_count: count,
      current_observation: envelope.observation,
      action_logs: logs,
      is_reset: isReset,
    }
    const update = this.#update()
    for (const viewer of this.#viewers) if (viewer.readyState === viewer.OPEN) viewer.send(update)
    return envelope
  }

  #update(): string {
    return toJson({ type: 'state_update', episode_state: this.#shown })
  }
}
