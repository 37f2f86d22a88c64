/** Performs the actions that look without judging, and says what each adds to an observation. */

import { messageOf, ServiceError } from '../errors.ts'
import type { JsonObject } from './environment.ts'
import { isBlank } from './ml-debug-fields.ts'
import { type Report, readProbeReport, readTensorReport, readVariableReport } from './ml-debug-reports.ts'
import { type ActionType, MAX_EXPRESSIONS, type MlDebugAction } from './ml-debug-schemas.ts'
import { failureOf, infraError, skippedNote, UNREADABLE_REPORT } from './ml-debug-text.ts'
import type { MlDebugWorker, ToolCall, ToolOutcome } from './ml-debug-worker.ts'
import { failedAnyway, withNotes } from './notes.ts'
import { idleFacts, outcomeFacts } from './outcome-facts.ts'
import type { Task } from './task-folder.ts'
import { unifiedDiff } from './unified-diff.ts'

/** What one call of a tool came to. */
export type ToolAnswer = {
  /** Fields of the observation. */
  fields: JsonObject
  error: string | null
  /** Fields of `metadata`. */
  facts: JsonObject
  /** The service failed: the turn doesn't count. */
  infra: boolean
}

export type ToolName = Exclude<ActionType, 'submit_fix'>
type ToolAction = MlDebugAction & { action_type: ToolName }

/** What the tools of an episode work with. */
export type Workshop = { worker: MlDebugWorker; task: Task }

/**
 * Perform a tool action that has what it needs.
 *
 * @param turn Number of the action in its episode.
 */
export async function performTool(
  { worker, task }: Workshop,
  action: ToolAction,
  turn: number,
  limitMs: number,
): Promise<ToolAnswer> {
  const { code, setup_code, fresh } = action
  const call = { turn, fresh, limitMs }
  switch (action.action_type) {
    case 'execute_snippet':
      return snippetAnswer(await worker.run({ ...call, code }))
    case 'inspect_tensor': {
      const instrument = { name: 'inspect_tensor', arguments: { expression: action.target_expression } }
      return await measure(worker, { ...call, code: setup_code, instrument }, readTensorReport)
    }
    case 'get_variable_state': {
      const expressions = action.expressions.slice(0, MAX_EXPRESSIONS)
      const skipped = action.expressions.length - expressions.length
      const instrument = { name: 'variable_state', arguments: { expressions } }
      const notes = skipped > 0 ? [skippedNote(skipped, MAX_EXPRESSIONS)] : []
      return await measure(worker, { ...call, code: setup_code, instrument }, readVariableReport, notes)
    }
    case 'run_training_probe': {
      const script = isBlank(code) ? task.brokenCode : code
      const instrument = { name: 'training_probe', arguments: { code: script, steps: action.steps, fresh } }
      return await measure(worker, { ...call, code: '', instrument }, readProbeReport)
    }
    case 'inspect_diff':
      return await compare(task.brokenCode, action.proposed_code)
  }
}

/** A snippet that fails says so like a program: in its exit code and on stderr. */
function snippetAnswer(call: ToolOutcome): ToolAnswer {
  const { outcome, limitMs } = call
  const infra = outcome.reason === 'infra_error'
  return answerOf(call, {}, infra ? failureOf(outcome, limitMs) : null, [])
}

async function measure(
  worker: MlDebugWorker,
  request: ToolCall,
  read: (report: unknown) => Report | null,
  notes: readonly string[] = [],
): Promise<ToolAnswer> {
  const call = await worker.run(request)
  const report = read(call.outcome.report)
  const failure = failureOf(call.outcome, call.limitMs)
  const error = failure ?? (report === null ? UNREADABLE_REPORT : report.error)
  // What was measured before the failure is worth showing.
  return answerOf(call, report?.fields ?? {}, error, notes)
}

function answerOf(
  { outcome, notes, facts }: ToolOutcome,
  measured: JsonObject,
  error: string | null,
  more: readonly string[],
): ToolAnswer {
  const { reason, exception, state_kept, stdout, stderr } = outcome
  // A cell that got no process could not write its own failure there.
  const written = stderr.text === '' && exception !== null ? `${exception}\n` : stderr.text
  const all = [...notes, ...more]
  if (reason !== 'ok' && exception === null && state_kept) all.push(failedAnyway(reason))
  const fields = {
    ...measured,
    stdout: stdout.text,
    stderr: withNotes(written, all),
    exit_code: reason === 'ok' && error === null ? 0 : 1,
    timed_out: reason === 'timeout',
  }
  return { fields, error, facts: { ...outcomeFacts(outcome), ...facts }, infra: reason === 'infra_error' }
}

async function compare(original: string, proposed: string): Promise<ToolAnswer> {
  try {
    const { text, additions, deletions } = await unifiedDiff(
      { name: 'original.py', text: original },
      { name: 'proposed.py', text: proposed },
    )
    const fields = { diff: text, additions, deletions, lines_changed: additions + deletions }
    return { fields, error: null, facts: idleFacts(''), infra: false }
  } catch (failure) {
    if (!(failure instanceof ServiceError)) throw failure
    const facts = { ...idleFacts(''), reason: 'infra_error' }
    return { fields: { exit_code: 1 }, error: infraError(messageOf(failure)), facts, infra: true }
  }
}
