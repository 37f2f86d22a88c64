/** What isolation the host gives, as the Python half finds out by trying. */

import { join } from 'node:path'
import { execa } from 'execa'
import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import { repositoryRoot } from './paths.ts'

const TRIAL_LIMIT_MS = 60_000

/** From strongest to weakest. */
const LEVELS = ['namespaces', 'landlock', 'none'] as const
const Level = z.enum(LEVELS)
export type Level = z.infer<typeof Level>

/** The report of `python -m worker.isolation.host_report`; keys that this page does not print are let through. */
export const HostReport = z.looseObject({
  levels: z.array(Level).min(1).describe('Levels that the host gives, best first.'),
  layers: z
    .record(z.string(), z.string().nullable())
    .describe('Null where a layer works, else why not and what it takes.'),
  notes: z.array(z.string()),
  cgroup: z.string(),
})
export type HostReport = z.infer<typeof HostReport>

/**
 * Try every layer of the sandbox once, in children that end at once.
 *
 * @throws {ServiceError} `isolation_unavailable` when not even the trial runs.
 */
export async function reportHost(python: string): Promise<HostReport> {
  const { exitCode, stdout, stderr } = await execa(python, ['-m', 'worker.isolation.host_report'], {
    cwd: repositoryRoot,
    env: { PYTHONPATH: join(repositoryRoot, 'python'), PYTHONDONTWRITEBYTECODE: '1' },
    stdin: 'ignore',
    timeout: TRIAL_LIMIT_MS,
    reject: false,
  })
  if (exitCode !== 0) {
    const said = stderr.trim().split('\n').at(-1) ?? ''
    throw new ServiceError('isolation_unavailable', `The sandbox can't be tried on this host: ${said}`)
  }
  return HostReport.parse(JSON.parse(stdout))
}

/**
 * The level that the service would use.
 *
 * @param wanted `best`, or one level.
 * @returns Null when the host doesn't give what is wanted, or only something weaker than `least`.
 */
export function levelInForce(report: HostReport, wanted: Level | 'best', least: Level): Level | null {
  const level = wanted === 'best' ? report.levels[0] : report.levels.find(given => given === wanted)
  return level !== undefined && LEVELS.indexOf(level) <= LEVELS.indexOf(least) ? level : null
}
