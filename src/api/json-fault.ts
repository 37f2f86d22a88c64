/**
 * Where a text stops being JSON, in the words of Python's parser.
 *
 * Runs only on text that `JSON.parse` refused, because V8 names the position in
 * some of its messages and not in others. Keeps its own stack, so nesting
 * can't exhaust the call stack.
 */

/** Offset in characters (code points, as Python counts), and what was expected there. */
export type JsonFault = { message: string; offset: number }

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SPACE = /[ \t\n\r]*/y
// Everything but quotes, backslashes and control characters.
const PLAIN_TEXT = /[ !#-[\]-\uffff]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const WORDS = ['true', 'false', 'null']

/** What the scanner stands before. */
type Expecting = 'value' | 'first_item' | 'first_key' | 'key' | 'after_value'

/** Find the first fault in a text that is known not to be JSON. */
export function findJsonFault(text: string): JsonFault {
  const closers: ('}' | ']')[] = []
  let expecting = 'value' as Expecting
  let at = 0

  const fault = (message: string, index: number): JsonFault => ({ message, offset: countCodePoints(text, index) })
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const found = pattern.test(text)
    if (found) at = pattern.lastIndex
    return found
  }
  const open = (closer: '}' | ']', next: Expecting) => {
    closers.push(closer)
    expecting = next
    at += 1
  }

  /** Consume a string whose quote is at `at`; null when it is whole. */
  const string = (): JsonFault | null => {
    const start = at
    at += 1
    for (;;) {
      skip(PLAIN_TEXT)
      const char = text[at]
      if (char === undefined) return fault('Unterminated string starting at', start)
      if (char === '"') break
      if (char !== '\\') return fault('Invalid control character at', at)
      if (skip(ESCAPE)) continue
      if (at + 1 >= text.length) return fault('Unterminated string starting at', start)
      return text[at + 1] === 'u' ? fault('Invalid \\uXXXX escape', at + 1) : fault('Invalid \\escape', at)
    }
    at += 1
    return null
  }

  for (;;) {
    skip(SPACE)
    const char = text[at]
    const closer = closers.at(-1)
    if (expecting === 'after_value') {
      if (closer === undefined) return fault('Extra data', at)
      if (char === ',') {
        at += 1
        expecting = closer === '}' ? 'key' : 'value'
      } else if (char === closer) {
        closers.pop()
        at += 1
      } else return fault("Expecting ',' delimiter", at)
      continue
    }
    if (expecting === 'key' || expecting === 'first_key') {
      if (expecting === 'first_key' && char === '}') {
        closers.pop()
        at += 1
        expecting = 'after_value'
        continue
      }
      if (char !== '"') return fault('Expecting property name enclosed in double quotes', at)
      const broken = string()
      if (broken) return broken
      skip(SPACE)
      if (text[at] !== ':') return fault("Expecting ':' delimiter", at)
      at += 1
      expecting = 'value'
      continue
    }
    if (expecting === 'first_item' && char === ']') {
      closers.pop()
      at += 1
      expecting = 'after_value'
      continue
    }
    if (char === '{') open('}', 'first_key')
    else if (char === '[') open(']', 'first_item')
    else {
      if (char === '"') {
        const broken = string()
        if (broken) return broken
      } else {
        const word = WORDS.find(candidate => text.startsWith(candidate, at))
        if (word !== undefined) at += word.length
        else if (!skip(NUMBER)) return fault('Expecting value', at)
      }
      expecting = 'after_value'
    }
  }
}

function countCodePoints(text: string, end: number): number {
  let count = end
  for (let index = 0; index < end - 1; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = text.charCodeAt(index + 1)
    if (next >= 0xdc00 && next <= 0xdfff) count -= 1
  }
  return count
}
