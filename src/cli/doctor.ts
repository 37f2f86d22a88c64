/** `forkyard doctor`: what this host gives, and what is missing. */

import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { type Diagnosis, diagnose } from '../setup/diagnosis.ts'

const LABEL_WIDTH = 20

/** Add the command. Its exit code is 1 when the service could not start. */
export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('tell which isolation this host gives and why, which Python, torch and GPU, and what is missing')
    .option('--json', 'print the facts as JSON', false)
    .action(async ({ json }: { json: boolean }) => {
      const diagnosis = await diagnose(readConfig())
      process.stdout.write(json ? `${JSON.stringify(diagnosis, null, 2)}\n` : describeDiagnosis(diagnosis))
      if (diagnosis.missing.some(({ needed }) => needed)) process.exitCode = 1
    })
}

/** The facts as a table for people. */
export function describeDiagnosis(diagnosis: Diagnosis): string {
  const { python, isolation } = diagnosis
  const rows: [string, string][] = [
    ['Node', diagnosis.node],
    ['Host', diagnosis.host],
    ['Python', python === null ? 'not set up' : `${python.version} at ${python.executable}`],
    ['torch', describeTorch(diagnosis)],
    ['numpy', python?.numpy ?? 'not there'],
    ['GPU', diagnosis.gpus.join('; ') || 'none seen'],
    ['Isolation', diagnosis.level ?? 'not enough to start'],
  ]
  if (isolation !== null) {
    rows.push(['  levels here', isolation.levels.join(', ')], ['  control groups', isolation.cgroup])
    for (const [layer, why] of Object.entries(isolation.layers)) rows.push([`  ${layer}`, why ?? 'works'])
    for (const note of isolation.notes) rows.push(['  note', note])
  }
  rows.push(['Tests prepared', diagnosis.test_environments.join(', ') || 'no: `npm test` does it'])
  for (const { needed, sentence } of diagnosis.missing) rows.push([needed ? 'MISSING' : 'Hint', sentence])
  if (!diagnosis.missing.some(({ needed }) => needed)) rows.push(['Verdict', 'the service can run here'])
  return rows.map(([label, text]) => `${label.padEnd(LABEL_WIDTH)}${text}\n`).join('')
}

function describeTorch({ python }: Diagnosis): string {
  if (python === null || python.torch === null) return 'not there'
  return `${python.torch}, ${python.cuda_devices.length > 0 ? `on ${python.cuda_devices.join(', ')}` : 'on the CPU'}`
}
