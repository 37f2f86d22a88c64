/** The parts of the repl wire that these tests look at, as a client sees them. */

/** Everything the service adds, and what the original put there. */
export type ReplMetadata = {
  task_prompt?: string
  message?: string
  final_answer?: string | null
  reason?: string
  state_kept?: boolean
}

export type ReplStep = {
  observation: {
    result: {
      stdout: string
      stderr: string
      locals_snapshot: Record<string, string>
      execution_time: number
      success: boolean
      exception: string | null
    }
    context_preview: string | null
    context_length: number
    available_variables: string[]
    iteration: number
    max_iterations: number
    metadata: ReplMetadata
  }
  reward: number | null
  done: boolean
  /** Missing where the client version drops it. */
  metadata?: ReplMetadata
}

/** A step and how long the client waited for it. */
export type TimedStep = ReplStep & { waited_s: number }
