/** JSON at the edge: replies any strict parser accepts, and input that can't exhaust the stack. */

import { isUtf8 } from 'node:buffer'
import { findJsonFault, type JsonFault } from './json-fault.ts'

/** Deepest nesting accepted from a client; the Python side of the service refuses not far above it. */
export const MAX_JSON_DEPTH = 500

// Escaped backslashes are consumed in pairs, so that a literal `\ud800` in a text is left alone.
const LONE_SURROGATE_ESCAPE = /\\(?:\\|ud[89a-f][0-9a-f]{2})/g
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]

/**
 * Serialise a reply. NaN and the infinities become null, and lone surrogates
 * become U+FFFD: Python clients refuse a string that holds one.
 *
 * @throws {TypeError} when the value holds a cycle or a BigInt.
 */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value)
  if (!text.includes('\\ud')) return text
  return text.replace(LONE_SURROGATE_ESCAPE, match => (match === '\\\\' ? match : '\\ufffd'))
}

/** Text of a body, or null when the bytes are not UTF-8. A leading byte order mark is dropped. */
export function decodeUtf8(bytes: Buffer): string | null {
  if (!isUtf8(bytes)) return null
  const marked = BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte)
  return bytes.toString('utf8', marked ? BYTE_ORDER_MARK.length : 0)
}

/** Either a value, or where and why the text is not JSON, or the news that it nests too deep. */
export type JsonReading =
  | { kind: 'value'; value: unknown }
  | { kind: 'malformed'; fault: JsonFault }
  | { kind: 'too_deep' }

/** Parse text from a client. Never throws. */
export function readJson(text: string): JsonReading {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: 'malformed', fault: findJsonFault(text) }
    return { kind: 'too_deep' }
  }
  return nestsDeeperThan(value, MAX_JSON_DEPTH) ? { kind: 'too_deep' } : { kind: 'value', value }
}

/** Whether containers nest more than `limit` levels; recursion stops at that level. */
function nestsDeeperThan(value: unknown, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (limit === 0) return true
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && nestsDeeperThan(item, limit - 1)) return true
    return false
  }
  for (const item of Object.values(value)) if (typeof item === 'object' && nestsDeeperThan(item, limit - 1)) return true
  return false
}

/** Whether a parsed value is a JSON object. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
