/**
 * Finds an ending that agent code *printed*: a whole line `FINAL(…)` or `FINAL_VAR(name)`.
 *
 * Helper calls end an episode on a private channel and need none of this. It
 * exists because models also print the words, and it believes as little as it
 * can: the line must hold nothing else, its brackets must balance, and the text
 * must not come from the context. Prose that mentions FINAL(…) ends nothing.
 *
 * The scan sees every byte of a step, so it works line by line on raw chunks
 * and holds no more than two times `MAX_ANSWER_BYTES`, however much is printed.
 */

/** Longest printed ending, in bytes; a longer answer needs a helper call. */
export const MAX_ANSWER_BYTES = 64 * 1024

/** Names collected from `FINAL_VAR(…)` lines of one step. */
const MAX_NAMES = 4

/** Lines of one step that are looked at closely; a flood of look-alikes past it is not read on. */
const MAX_LINES = 100_000

/** Context characters that one step may have searched, so that a flood of endings can't stall the service. */
const CONTEXT_SEARCH_CHARS = 256 * 1024 * 1024

const NEWLINE = 0x0a
const OPEN = 0x28
const CLOSE = 0x29
const WORD = Buffer.from('FINAL')
const ANSWER_OPENER = Buffer.from('FINAL(')
const NAME_OPENER = Buffer.from('FINAL_VAR(')
const NAME_LINE = /^FINAL_VAR\(\s*(["']?)([\p{L}_][\p{L}\p{N}_]*)\1\s*\)$/u

/** Why a line that looked like an ending was not one. */
export type IgnoredWhy = 'in_context' | 'quoted' | 'unclosed' | 'trailing_text' | 'too_long' | 'not_a_name' | 'too_many'

/** What one step printed. */
export type PrintedEnding = {
  /** Text inside the first acceptable `FINAL(…)` line, trimmed. */
  answer: string | null
  /** Variables named by `FINAL_VAR(…)` lines, in order. */
  names: string[]
  /** Why other candidates were passed over. */
  ignored: Set<IgnoredWhy>
}

/** Scans the stdout of one step. Feed it with `push`, then ask `finish` once. */
export class PrintedFinal {
  readonly #context: string
  readonly #found: PrintedEnding = { answer: null, names: [], ignored: new Set() }
  #searchedChars = 0
  #lines = 0
  /** Bytes of the line whose newline has not come yet. */
  #pieces: Buffer[] = []
  #pieceBytes = 0
  /** The current line is longer than any ending: wait for its newline. */
  #skipping = false
  /** Lines of a `FINAL(` whose bracket is still open. */
  #open: string[] = []
  #openBytes = 0
  #depth = 0

  /** @param context Text the agent was given; an ending that occurs in it verbatim is a quotation. */
  constructor(context: string) {
    this.#context = context
  }

  /** Scan the next bytes. Chunks may split lines and characters anywhere; they are not kept. */
  push(chunk: Buffer): void {
    let start = 0
    while (start < chunk.length && !this.#over) {
      if (this.#pieceBytes === 0 && !this.#skipping && this.#open.length === 0) {
        start = firstLineOfInterest(chunk, start)
      }
      const newline = chunk.indexOf(NEWLINE, start)
      if (newline === -1) {
        this.#keep(chunk.subarray(start))
        return
      }
      this.#endLine(chunk.subarray(start, newline))
      start = newline + 1
    }
  }

  /** Take the end of the output as the end of its last line, and report. */
  finish(): PrintedEnding {
    if (!this.#over) this.#endLine(Buffer.alloc(0))
    if (this.#open.length > 0) this.#drop('unclosed')
    return this.#found
  }

  /** Nothing that is printed from here on can matter. */
  get #over(): boolean {
    return this.#found.answer !== null || this.#lines > MAX_LINES
  }

  #keep(piece: Buffer): void {
    if (this.#skipping || piece.length === 0) return
    if (this.#pieceBytes + piece.length > MAX_ANSWER_BYTES) {
      this.#judgeLongLine(Buffer.concat([...this.#pieces, piece.subarray(0, NAME_OPENER.length)]))
      this.#pieces = []
      this.#pieceBytes = 0
      this.#skipping = true
      return
    }
    this.#pieces.push(Buffer.from(piece))
    this.#pieceBytes += piece.length
  }

  #endLine(rest: Buffer): void {
    if (this.#pieceBytes > 0) this.#keep(rest)
    const line = this.#pieceBytes > 0 ? Buffer.concat(this.#pieces) : rest
    const skipped = this.#skipping
    this.#pieces = []
    this.#pieceBytes = 0
    this.#skipping = false
    if (skipped) return
    if (line.length > MAX_ANSWER_BYTES) this.#judgeLongLine(line)
    else this.#judgeLine(line)
  }

  /** @param head At least the start of a line that is too long to be an ending or a part of one. */
  #judgeLongLine(head: Buffer): void {
    if (this.#open.length > 0) this.#drop('too_long')
    else if (startsAt(head, ANSWER_OPENER, firstVisible(head))) this.#found.ignored.add('too_long')
  }

  #judgeLine(line: Buffer): void {
    if (++this.#lines > MAX_LINES) this.#found.ignored.add('too_many')
    const first = firstVisible(line)
    if (startsAt(line, ANSWER_OPENER, first)) {
      // A fresh opener at a line start outranks one that never closed.
      if (this.#open.length > 0) this.#drop('unclosed')
      this.#continueAnswer(line.subarray(first))
    } else if (startsAt(line, NAME_OPENER, first)) {
      if (this.#open.length > 0) this.#drop('unclosed')
      this.#judgeName(line.toString('utf8').trim())
    } else if (this.#open.length > 0) {
      this.#continueAnswer(line)
    } else if (isQuote(line[first]) && startsAt(line, WORD, first + 1)) {
      this.#found.ignored.add('quoted')
    }
  }

  #continueAnswer(line: Buffer): void {
    const end = this.#closingBracket(line)
    this.#openBytes += line.length + 1
    this.#open.push(line.toString('utf8', 0, end === null ? line.length : end + 1))
    if (this.#openBytes > MAX_ANSWER_BYTES) this.#drop('too_long')
    else if (end !== null && firstVisible(line, end + 1) < line.length) this.#drop('trailing_text')
    else if (end !== null) this.#accept()
  }

  #accept(): void {
    const ending = this.#open.join('\n')
    this.#close()
    if (!this.#isQuotation(ending)) this.#found.answer = ending.slice(ANSWER_OPENER.length, -1).trim()
  }

  /** Index of the bracket that balances the opener, or null while it is open. Only round brackets count. */
  #closingBracket(line: Buffer): number | null {
    for (let index = 0; index < line.length; index++) {
      if (line[index] === OPEN) this.#depth++
      else if (line[index] === CLOSE && --this.#depth === 0) return index
    }
    return null
  }

  #judgeName(line: string): void {
    const name = NAME_LINE.exec(line)?.[2]
    if (name === undefined) this.#found.ignored.add('not_a_name')
    else if (!this.#found.names.includes(name) && !this.#isQuotation(line)) {
      if (this.#found.names.length < MAX_NAMES) this.#found.names.push(name)
      else this.#found.ignored.add('too_many')
    }
  }

  #isQuotation(ending: string): boolean {
    if (this.#searchedChars > CONTEXT_SEARCH_CHARS) {
      this.#found.ignored.add('too_many')
      return true
    }
    this.#searchedChars += this.#context.length
    const quoted = this.#context.includes(ending)
    if (quoted) this.#found.ignored.add('in_context')
    return quoted
  }

  #drop(why: IgnoredWhy): void {
    this.#found.ignored.add(why)
    this.#close()
  }

  #close(): void {
    this.#open = []
    this.#openBytes = 0
    this.#depth = 0
  }
}

/** Start of the next line that contains the word, or of the unfinished last line when none does. */
function firstLineOfInterest(chunk: Buffer, from: number): number {
  const hit = chunk.indexOf(WORD, from)
  const before = chunk.subarray(from, hit === -1 ? chunk.length : hit)
  return from + before.lastIndexOf(NEWLINE) + 1
}

/** Index of the first byte that is not ASCII whitespace, or the length. */
function firstVisible(bytes: Buffer, from = 0): number {
  let index = from
  while (index < bytes.length && isSpace(bytes[index])) index++
  return index
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d)
}

function isQuote(byte: number | undefined): boolean {
  return byte === 0x22 || byte === 0x27
}

function startsAt(bytes: Buffer, word: Buffer, at: number): boolean {
  return bytes.length >= at + word.length && bytes.compare(word, 0, word.length, at, at + word.length) === 0
}
