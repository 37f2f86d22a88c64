/**
 * Takes code out of Markdown, because models wrap it in a fence although they are asked not to.
 *
 * Fences: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
 */

/** The words after an opening fence only describe the code, so the tilde form, which Python can start a line with, is held to few. */
const OPENER = /^ {0,3}(?:(`{3,})[^`]*|(~{3,})[ \t]*(?:python|python3|py)?[ \t]*)\r?$/i
const STRING_QUOTES = /"""|'''/g

/**
 * The content of the first fenced block; a text without one as it is.
 *
 * A fence inside a triple-quoted string is text of the program: it neither
 * opens nor closes a block. A block that is never closed ends with the text.
 */
export function stripFences(text: string): string {
  if (!text.includes('```') && !text.includes('~~~')) return text
  const lines = text.split('\n')
  const opening = findOpener(lines)
  if (opening === null) return text
  const content = lines.slice(opening.index + 1)
  const end = findCloser(content, opening.fence)
  if (end !== null) return asText(content.slice(0, end))
  // Some write the closing fence right behind the last character.
  const rest = asText(content).trimEnd()
  return rest.endsWith(opening.fence) ? `${rest.slice(0, -opening.fence.length)}\n` : content.join('\n')
}

function findOpener(lines: readonly string[]): { index: number; fence: string } | null {
  let quote: string | null = null
  for (const [index, line] of lines.entries()) {
    const [, backticks, tildes] = quote === null ? (OPENER.exec(line) ?? []) : []
    const fence = backticks ?? tildes
    if (fence !== undefined) return { index, fence }
    quote = quoteAfter(line, quote)
  }
  return null
}

/** Index of the line that closes a block: one outside of strings, else the first of all, else null. */
function findCloser(lines: readonly string[], fence: string): number | null {
  let quote: string | null = null
  let first: number | null = null
  for (const [index, line] of lines.entries()) {
    if (closes(line, fence)) {
      if (quote === null) return index
      first ??= index
    }
    quote = quoteAfter(line, quote)
  }
  return first
}

/** At least as long as the opening fence, of the same character, and nothing else on the line. */
function closes(line: string, fence: string): boolean {
  const word = line.trim()
  return word.length >= fence.length && word === fence.charAt(0).repeat(word.length) && /^ {0,3}\S/.test(line)
}

/** The triple quote that is open after a line. */
function quoteAfter(line: string, before: string | null): string | null {
  let open = before
  for (const [quote] of line.matchAll(STRING_QUOTES)) {
    if (open === null) open = quote
    else if (open === quote) open = null
  }
  return open
}

const asText = (lines: readonly string[]): string => (lines.length === 0 ? '' : `${lines.join('\n')}\n`)
