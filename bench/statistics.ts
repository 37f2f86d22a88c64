/** Samples and what is said about them. */

export type Summary = { n: number; p50_ms: number; p99_ms: number }

/** @param samples Durations in milliseconds, in any order; at least one. */
export function summarize(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
  return { n: sorted.length, p50_ms: at(0.5), p99_ms: at(0.99) }
}

/** Time each of `count` runs, after `warmup` runs that don't count. */
export async function sample(count: number, warmup: number, run: () => Promise<unknown>): Promise<number[]> {
  const samples: number[] = []
  for (let index = -warmup; index < count; index++) {
    const startedAt = performance.now()
    await run()
    if (index >= 0) samples.push(performance.now() - startedAt)
  }
  return samples
}
