/** Request bodies, read the way FastAPI reads them. */

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { HttpFault, unprocessable } from './http-fault.ts'
import { decodeUtf8, isJsonObject, readJson } from './json.ts'
import { errorItem } from './validation.ts'

const MEDIA_TYPE = /^[\w!#$&^.+*'`|~-]+\/[\w!#$&^.+*'`|~-]+\s*(?:;.*)?$/
const JSON_TYPE = /^application\/(?:json|[\w!#$&^.-]+\+json)\s*(?:;.*)?$/i

/** Keep every body as bytes, whatever its content type: the routes decide what it means. */
export function installBodyReading(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', (request, _reply, done) => {
    // The framework would answer 415 to a header it can't parse; such a body is simply not JSON.
    const type = request.headers['content-type']
    if (type !== undefined && !MEDIA_TYPE.test(type)) request.headers['content-type'] = 'application/octet-stream'
    done()
  })
}

/** The bytes of a body; empty when there is none. */
export function bodyBytes(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
}

/**
 * The object in a JSON body, or null for no body or an empty one.
 *
 * @param isNullEmpty Whether the JSON value `null` counts as no body too.
 * @throws {HttpFault} 400 for bytes that are not UTF-8 or nest too deep; 422
 * for text that is not JSON, or a body that is not a JSON object.
 */
export function readBodyObject(request: FastifyRequest, isNullEmpty = false): Record<string, unknown> | null {
  const bytes = bodyBytes(request)
  if (bytes.length === 0) return null
  const text = decodeUtf8(bytes)
  if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) throw notAnObject(text ?? bytes.toString('latin1'))
  if (text === null) throw unreadable()
  const reading = readJson(text)
  if (reading.kind === 'too_deep') throw unreadable()
  if (reading.kind === 'malformed') {
    const { message, offset } = reading.fault
    throw unprocessable([errorItem('json_invalid', ['body', offset], 'JSON decode error', {}, { error: message })])
  }
  if (reading.value === null && isNullEmpty) return null
  if (!isJsonObject(reading.value)) throw notAnObject(reading.value)
  return reading.value
}

const unreadable = () => new HttpFault(400, 'There was an error parsing the body')

const notAnObject = (input: unknown) =>
  unprocessable([
    errorItem(
      'model_attributes_type',
      ['body'],
      'Input should be a valid dictionary or object to extract fields from',
      input,
    ),
  ])
