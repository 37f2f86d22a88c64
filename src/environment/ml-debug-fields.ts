/** What an action needs of its fields beyond their types; what it lacks is an observation, not a refused request. */

import { stripFences } from './ml-debug-fences.ts'
import { MAX_CODE_BYTES, MAX_EXPRESSION_CHARS, type MlDebugAction } from './ml-debug-schemas.ts'
import { missing, tooLong } from './ml-debug-text.ts'

const CODE_FIELDS = ['fixed_code', 'code', 'setup_code', 'proposed_code'] as const

/** The action with the code of its fields taken out of Markdown. */
export function withoutFences(action: MlDebugAction): MlDebugAction {
  const stripped = CODE_FIELDS.map(field => [field, stripFences(action[field])])
  return { ...action, ...Object.fromEntries(stripped) }
}

/** Why an action can't be performed, naming the field; null when it can. Knows nothing of blank submissions. */
export function objectionTo(action: MlDebugAction): string | null {
  for (const field of CODE_FIELDS) {
    const bytes = Buffer.byteLength(action[field])
    if (bytes > MAX_CODE_BYTES) return tooLong(field, bytes, MAX_CODE_BYTES, 'bytes')
  }
  switch (action.action_type) {
    case 'execute_snippet':
      return isBlank(action.code) ? missing('code', 'there is nothing to run') : null
    case 'inspect_tensor':
      if (isBlank(action.target_expression)) return missing('target_expression', 'there is nothing to evaluate')
      return longExpression('target_expression', action.target_expression)
    case 'get_variable_state': {
      if (action.expressions.length === 0) return missing('expressions', 'there is nothing to evaluate')
      const objections = action.expressions.map((text, index) => longExpression(`expressions[${index}]`, text))
      return objections.find(objection => objection !== null) ?? null
    }
    case 'inspect_diff':
      return isBlank(action.proposed_code) ? missing('proposed_code', 'there is nothing to compare') : null
    case 'run_training_probe':
    case 'submit_fix':
      return null
  }
}

/** Whether a text holds no more than white space. */
export const isBlank = (text: string): boolean => text.trim() === ''

function longExpression(field: string, text: string): string | null {
  const length = text.length <= MAX_EXPRESSION_CHARS ? 0 : [...text].length
  return length > MAX_EXPRESSION_CHARS ? tooLong(field, length, MAX_EXPRESSION_CHARS, 'characters') : null
}
