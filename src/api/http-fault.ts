/** Answers other than 200: thrown by handlers, shaped in one place. */

import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { toJson } from './json.ts'
import { RETRY_AFTER_S, toFailure } from './status.ts'
import type { ErrorItem } from './validation.ts'

/** Longest that a refused body is read to its end, in milliseconds. */
const DISCARD_TIMEOUT_MS = 20_000

/** A refusal whose body is `{"detail": …}`, as FastAPI shapes it. */
export class HttpFault extends Error {
  override readonly name = 'HttpFault'
  readonly status: number
  readonly detail: string | ErrorItem[]
  readonly headers: Record<string, string>

  constructor(status: number, detail: string | ErrorItem[], headers: Record<string, string> = {}) {
    super(typeof detail === 'string' ? detail : 'invalid request')
    this.status = status
    this.detail = detail
    this.headers = headers
  }
}

/** The refusal of an invalid body. */
export const unprocessable = (items: ErrorItem[]): HttpFault => new HttpFault(422, items)

/** Send a JSON value; NaN and lone surrogates are made harmless. */
export function sendJson(reply: FastifyReply, value: unknown, status = 200): FastifyReply {
  return sendJsonText(reply.code(status), toJson(value))
}

/** Send text that is JSON already. As bytes, because the framework adds a charset to the type of a string. */
export function sendJsonText(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('content-type', 'application/json').send(Buffer.from(text))
}

/** Turn whatever a handler threw into its answer. @param bodyLimitMib For the text of a 413. */
export function createErrorHandler(bodyLimitMib: number) {
  return async (error: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    if (error instanceof HttpFault) {
      return sendJson(reply.headers(error.headers), { detail: error.detail }, error.status)
    }
    if ('code' in error && error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
      await discardBody(request.raw)
      const detail = `Request body is larger than the limit of ${bodyLimitMib} MiB (MAX_BODY_MIB)`
      return sendJson(reply, { detail }, 413)
    }
    const status = 'statusCode' in error ? error.statusCode : undefined
    if (status !== undefined && status >= 400 && status < 500) {
      return sendJson(reply, { detail: STATUS_CODES[status] ?? 'Bad Request' }, status)
    }
    return sendFailure(reply, request, error)
  }
}

/** Read what a client still sends and forget it: most clients look for an answer only when all is sent. */
function discardBody(body: IncomingMessage): Promise<void> {
  return new Promise(resolve => {
    // A client that sends without end gets its answer too; the connection closes behind it.
    const timer = setTimeout(resolve, DISCARD_TIMEOUT_MS)
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    body.once('end', done)
    body.once('close', done)
    body.resume()
  })
}

function sendFailure(reply: FastifyReply, request: FastifyRequest, error: Error): FastifyReply {
  const failure = toFailure(error)
  if (failure.http === 500) {
    request.log.error({ err: error, method: request.method, url: request.url }, 'request failed')
    return reply.code(500).header('content-type', 'text/plain; charset=utf-8').send('Internal Server Error')
  }
  if (failure.retry) reply.header('retry-after', String(RETRY_AFTER_S))
  const { code, message, retry, facts } = failure
  return sendJson(reply, { detail: message, code, retry, ...facts }, failure.http)
}
