/** Rubrics that compare a final answer with the expected one. */

import { type Rubric, score } from './rubric.ts'

/** What a reset may give as `expected_answer`. */
export type ExpectedAnswer = string | number | boolean

/** A submitted answer, and what it should have been. */
export type AnswerEvidence = { answer: string; expected: ExpectedAnswer }

/** How far a number may be from the expected one; either bound is enough. */
export type Tolerance = { absolute?: number; relative?: number }

// What Python's float() reads, without the words inf and nan and without underscores.
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/

/** The form in which answers are compared: text, trimmed, lower-cased. */
export function answerText(value: ExpectedAnswer): string {
  return String(value).trim().toLowerCase()
}

/**
 * 1 when the answer equals the expected one as text, else 0.
 *
 * A JSON number has several spellings (`1.0` and `1` arrive as the same value),
 * so an expected *number* also equals any decimal spelling of it. Callers who
 * mean the spelling give a string.
 */
export const exactMatch: Rubric<AnswerEvidence> = ({ answer, expected }) => {
  const given = answerText(answer)
  if (given === answerText(expected)) return score(1, 'answer equals the expected answer')
  if (typeof expected === 'number' && isSameDecimal(given, answerText(expected))) {
    return score(1, 'answer is the expected number')
  }
  return score(0, 'answer differs from the expected answer')
}

/** 1 when equal, 0.5 when one text contains the other, else 0. An empty text contains nothing and is in nothing. */
export const fuzzyMatch: Rubric<AnswerEvidence> = evidence => {
  const exact = exactMatch(evidence)
  if (exact.value === 1) return exact
  const given = answerText(evidence.answer)
  const wanted = answerText(evidence.expected)
  if (given === '' || wanted === '') return score(0, 'one side is empty')
  if (given.includes(wanted)) return score(0.5, 'answer contains the expected answer')
  if (wanted.includes(given)) return score(0.5, 'answer is a part of the expected answer')
  return exact
}

/**
 * 1 when both sides are numbers and close enough, else 0.
 *
 * @param tolerance Absolute in the unit of the answer, relative to the expected size; both default to 0.
 */
export function numericMatch({ absolute = 0, relative = 0 }: Tolerance = {}): Rubric<AnswerEvidence> {
  return ({ answer, expected }) => {
    const given = parseNumber(answerText(answer))
    const wanted = parseNumber(answerText(expected))
    if (wanted === null) return score(0, 'the expected answer is not a number')
    if (given === null) return score(0, 'answer is not a number')
    const allowed = Math.max(absolute, relative * Math.abs(wanted))
    // Neither reason says how far: it may reach the agent, who could compute the expected number from it.
    return Math.abs(given - wanted) <= allowed
      ? score(1, 'answer is within the tolerance')
      : score(0, 'answer is outside the tolerance')
  }
}

/** Whether two texts spell the same decimal number, to the last digit. */
function isSameDecimal(one: string, other: string): boolean {
  const canonical = canonicalDecimal(one)
  return canonical !== null && canonical === canonicalDecimal(other)
}

/** Sign, digits without zeros at either end, and exponent of the last digit; null when it is no number. */
function canonicalDecimal(text: string): string | null {
  const parts = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d{1,6}))?$/.exec(text)
  if (parts === null || !NUMBER.test(text)) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts
  const digits = (whole + fraction).replace(/^0+/, '')
  const kept = digits.replace(/0+$/, '')
  if (kept === '') return '0'
  return `${sign === '-' ? '-' : ''}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`
}

function parseNumber(text: string): number | null {
  if (!NUMBER.test(text)) return null
  const value = Number(text)
  return Number.isFinite(value) ? value : null
}
