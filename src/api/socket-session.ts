/** The life of a session that belongs to a socket: opened on connect, closed with it, in either direction. */

import type { WebSocket } from '@fastify/websocket'
import type { FastifyRequest } from 'fastify'
import type { CloseReason, Session } from '../environment/sessions.ts'
import { ServiceError } from '../errors.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import type { Heartbeat } from './heartbeat.ts'
import { CLOSE, SocketPump } from './socket-pump.ts'
import { type Failure, toFailure } from './status.ts'

/** Longest a refused socket stays open, in milliseconds. */
const REFUSAL_LINGER_MS = 1000

export type SocketProtocol = {
  /** Serve one text frame; what is thrown closes the socket. */
  onText: (text: string, session: Session, pump: SocketPump) => Promise<void>
  /** Serve a binary frame. */
  onBinary: (session: Session, pump: SocketPump) => Promise<void>
  /** The one frame sent before the socket closes when no session could be opened. */
  refusal: (failure: Failure) => string
}

/** Open a session for a socket and serve its frames until either ends. */
export function serveSession(
  socket: WebSocket,
  request: FastifyRequest,
  edge: EnvironmentEdge,
  heartbeat: Heartbeat,
  protocol: SocketProtocol,
): void {
  heartbeat.watch(socket, request.raw.socket)
  const taken = takeSession(edge, request)
  if ('refusal' in taken) {
    refuse(socket, protocol.refusal(taken.refusal))
    return
  }
  const { session, isLent } = taken
  const pump: SocketPump = new SocketPump(socket, {
    onText: text => protocol.onText(text, session, pump),
    onBinary: () => protocol.onBinary(session, pump),
    onAlive: () => {
      session.touch()
      heartbeat.sign(socket)
    },
    onGone: () => {
      // Also while a step runs: the slot and the worker are free at once.
      if (isLent) edge.claims.release(session)
      else session.close('client')
    },
  })
  session.onClose(why => pump.end(closeCode(why), why))
}

type Taken = { session: Session; isLent: boolean } | { refusal: Failure }

/** A session of the socket's own, or the one that `?session_id=` names, opened before over `/mcp`. */
function takeSession(edge: EnvironmentEdge, request: FastifyRequest): Taken {
  const id = new URL(request.url, 'http://localhost').searchParams.get('session_id')
  try {
    const session = id === null ? edge.sessions.open(edge.environment.name) : edge.sessions.find(id)
    if (session === undefined || (id !== null && session.id !== id) || session.environment !== edge.environment) {
      return { refusal: sessionRefusal(`Unknown session_id: ${id}`) }
    }
    if (!edge.claims.claim(session)) {
      return { refusal: sessionRefusal(`Session ${id} already has an attached WebSocket`) }
    }
    return { session, isLent: id !== null }
  } catch (error) {
    return { refusal: toFailure(error) }
  }
}

/** A refusal that every client knows as `SESSION_ERROR`. */
function sessionRefusal(message: string): Failure {
  return { ...toFailure(new ServiceError('episode_not_found', message)), socket: 'SESSION_ERROR' }
}

/**
 * Say why at once, and close when the client has spoken or after a moment:
 * older clients that see the close before their first send never read the reason.
 */
function refuse(socket: WebSocket, frame: string): void {
  socket.send(frame)
  const close = () => socket.close(CLOSE.normal)
  const timer = setTimeout(close, REFUSAL_LINGER_MS)
  socket.once('message', close)
  socket.once('close', () => clearTimeout(timer))
}

function closeCode(why: CloseReason): number {
  return why === 'shutdown' ? CLOSE.goingAway : CLOSE.normal
}
