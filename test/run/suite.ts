/** What a run of tests or checks came to. */

export type SuiteResult = { name: string; passed: number; failed: number; skipped: number }

/** Whether a suite says yes: something ran, and nothing failed. */
export const isGreen = ({ passed, failed }: SuiteResult): boolean => failed === 0 && passed > 0

/** The last line of a run: `N passed, N failed`, and how many were skipped if any were. */
export function summarize(results: SuiteResult[]): string {
  const sum = (key: 'passed' | 'failed' | 'skipped') => results.reduce((total, result) => total + result[key], 0)
  const skipped = sum('skipped')
  return `${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

/** Run a suite and say how long it took. */
export async function timed(runSuite: () => Promise<SuiteResult>): Promise<SuiteResult> {
  const started = performance.now()
  const result = await runSuite()
  console.log(`--- ${result.name}: ${Math.round((performance.now() - started) / 1000)} s`)
  return result
}

/** Print one line about each suite, complaints about empty ones, and the closing line; sets the exit code. */
export function conclude(results: SuiteResult[]): void {
  console.log()
  for (const result of results) {
    console.log(
      `${result.name}: ${summarize([result])}${result.passed + result.failed === 0 ? ' (nothing ran: counts as a failure)' : ''}`,
    )
  }
  console.log(summarize(results))
  if (results.length === 0 || !results.every(isGreen)) process.exitCode = 1
}
