/**
 * Reads the metrics that a training script prints: `LOSSES:[…]`, `VAL_ACCS:[…]`, `VAL_ACC:x`, `FINAL_LOSS:x`.
 *
 * They are claims of agent code, shown and never rewarded. The first of each
 * counts; where the script marks a part of its output with
 * `##METRICS_START##`, only that part is read.
 */

export const METRICS_START = '##METRICS_START##'
export const METRICS_END = '##METRICS_END##'

/** Values taken of one list; a longer one is cut, and `nanCount` then counts what was taken. */
const MAX_VALUES = 5_000
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
const NOT_A_NUMBER = /^[+-]?nan$/i
const INFINITE = /^([+-]?)inf(?:inity)?$/i
const WORD_CHARACTER = /\w/

/** NaN and infinities stand as such in here; what a list holds beside numbers is left out. */
export type PrintedMetrics = {
  losses: number[]
  /** Of `FINAL_LOSS`, else the last of the losses; null where neither was printed. */
  finalLoss: number | null
  valAccs: number[]
  /** Of `VAL_ACC`, else the last of `VAL_ACCS`; null where neither was printed. */
  valAcc: number | null
  /** Losses that are NaN. */
  nanCount: number
}

/** Read what a script printed. Takes any text, cut in the middle too. */
export function readPrintedMetrics(stdout: string): PrintedMetrics {
  const text = markedPart(stdout)
  const losses = readList(text, 'LOSSES')
  const valAccs = readList(text, 'VAL_ACCS')
  return {
    losses,
    finalLoss: readNumber(text, 'FINAL_LOSS') ?? losses.at(-1) ?? null,
    valAccs,
    valAcc: readNumber(text, 'VAL_ACC') ?? valAccs.at(-1) ?? null,
    nanCount: losses.filter(Number.isNaN).length,
  }
}

function markedPart(stdout: string): string {
  const start = stdout.indexOf(METRICS_START)
  if (start === -1) return stdout
  const end = stdout.indexOf(METRICS_END, start)
  return stdout.slice(start + METRICS_START.length, end === -1 ? undefined : end)
}

/** What follows the first `key:` that is a word of its own; null where there is none. */
function after(text: string, key: string): string | null {
  const word = `${key}:`
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (at === 0 || !WORD_CHARACTER.test(text.charAt(at - 1))) return text.slice(at + word.length)
  }
  return null
}

function readList(text: string, key: string): number[] {
  const rest = after(text, key)?.trimStart()
  if (!rest?.startsWith('[')) return []
  const end = rest.indexOf(']')
  const items = rest.slice(1, end === -1 ? undefined : end).split(',', MAX_VALUES)
  return items.map(toNumber).filter(value => value !== null)
}

function readNumber(text: string, key: string): number | null {
  const rest = after(text, key)
  if (rest === null) return null
  const line = rest.split('\n', 1)[0] ?? ''
  return toNumber(line.trim().split(/[\s,;\])]/, 1)[0] ?? '')
}

/** A number as Python prints it; null for anything else. */
function toNumber(given: string): number | null {
  const word = given.trim()
  if (NUMBER.test(word)) return Number(word)
  if (NOT_A_NUMBER.test(word)) return Number.NaN
  const sign = INFINITE.exec(word)?.[1]
  if (sign === undefined) return null
  return sign === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
