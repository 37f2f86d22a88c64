/**
 * Installs the workers' packages, with torch in the build that the host asked for.
 *
 * On Linux the plain package index gives a torch that brings several gigabytes
 * of CUDA. The CPU build comes from an index of the PyTorch project; where that
 * can't be had, the plan that pip makes is read before anything is fetched, and
 * a plan with CUDA in it is not carried out.
 */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import { pipInstall, tryPip, tryPipInstall } from './pip.ts'
import type { Progress } from './progress.ts'
import { isTorch, namesOf } from './requirements.ts'

const CPU_INDEX = 'https://download.pytorch.org/whl/cpu'
const CONNECT_LIMIT_S = 4
const PROBE_LIMIT_MS = 10_000

/** Which torch: a build without CUDA, one with it, or none. */
export type TorchChoice = 'cpu' | 'cuda' | 'none'

/** What the host says about torch. */
export type TorchSettings = { torch: TorchChoice; index: string | undefined }

const Plan = z.object({ install: z.array(z.object({ metadata: z.object({ name: z.string() }) })) })

/**
 * Install `requirements` into the environment of `python`.
 *
 * @throws {ServiceError} `missing_tool` when pip fails, or when only a CUDA build of torch is to be had and was not asked for.
 */
export async function installWithTorch(
  python: string,
  requirements: string[],
  { torch, index }: TorchSettings,
  progress: Progress,
): Promise<void> {
  const torchLine = requirements.find(isTorch)
  if (torch === 'none' || torchLine === undefined) {
    const others = requirements.filter(line => !isTorch(line))
    progress.stage(`installing ${namesOf(others)}`)
    return await pipInstall(python, others, progress)
  }
  if (await installFromIndex(python, torchLine, { torch, index }, progress)) {
    progress.stage(`installing ${namesOf(requirements.filter(line => !isTorch(line)))} and what torch needs`)
    return await pipInstall(python, requirements, progress)
  }
  const args = index === undefined ? requirements : ['--extra-index-url', index, ...requirements]
  if (torch === 'cpu') await refuseCuda(python, args, progress)
  progress.stage(`installing ${namesOf(requirements)}`)
  await pipInstall(python, args, progress)
}

/** Install torch alone from the index of its project, or from the one that the host names; false when it isn't had there. */
async function installFromIndex(
  python: string,
  torchLine: string,
  { torch, index }: TorchSettings,
  progress: Progress,
): Promise<boolean> {
  const source = index ?? (torch === 'cpu' && process.platform === 'linux' ? CPU_INDEX : undefined)
  if (source === undefined) return false
  // An index may be written with a password in front of its host.
  const { host } = new URL(source)
  progress.stage(`looking for torch at ${host}`)
  const requirement = torch === 'cpu' && process.platform === 'linux' ? asCpuBuild(torchLine) : torchLine
  if (await lists(python, source, versionOf(requirement))) {
    progress.stage(`installing ${requirement}: about 200 MB without CUDA, gigabytes with it`)
    if (await tryPipInstall(python, ['--no-deps', '--index-url', source, '--retries=1', requirement], progress))
      return true
  }
  progress.stage(`${host} can't be reached or has no such torch; asking the package index`)
  return false
}

/** Whether an index answers at once and has this version; other indexes of the user's own pip settings may answer too. */
async function lists(python: string, index: string, version: string): Promise<boolean> {
  let listed = false
  const onLine = (line: string) => {
    listed ||= line.split(/[\s,()]+/).includes(version)
  }
  const args = ['index', 'versions', 'torch', '--index-url', index, '--retries=0', `--timeout=${CONNECT_LIMIT_S}`]
  return (await tryPip(python, args, { limitMs: PROBE_LIMIT_MS, onLine })) && listed
}

const versionOf = (requirement: string): string => /==([\w.+]+)/.exec(requirement)?.[1] ?? ''

/** Pin the build that carries the local version of the CPU wheels, so that no other index can answer with CUDA. */
export function asCpuBuild(torchLine: string): string {
  return torchLine.replace(/^(torch==[\w.]+)(?=\s|;|$)/, '$1+cpu')
}

async function refuseCuda(python: string, args: string[], progress: Progress): Promise<void> {
  const report = join(python, '../../plan.json')
  progress.stage('asking which build of torch that would be')
  await pipInstall(python, ['--dry-run', '--report', report, ...args], progress)
  const cuda = cudaPackages(JSON.parse(await readFile(report, 'utf8')))
  if (cuda.length === 0) return
  throw new ServiceError(
    'missing_tool',
    `The CPU build of torch can't be reached, and the build at hand brings ${cuda.length} packages of CUDA (gigabytes): ` +
      'set FORKYARD_TORCH=cuda to take it, FORKYARD_TORCH=none to go without torch, or FORKYARD_TORCH_INDEX to a mirror of the CPU wheels.',
  )
}

/** Names of the packages in a plan that exist only for CUDA. */
export function cudaPackages(plan: unknown): string[] {
  const names = Plan.parse(plan).install.map(({ metadata }) => metadata.name.toLowerCase())
  return names.filter(name => /^(nvidia|cuda)-|^triton$/.test(name))
}
