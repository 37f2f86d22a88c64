/** Everything that `forkyard doctor` finds out. */

import { arch, platform, release } from 'node:os'
import { execa } from 'execa'
import { ServiceError } from '../errors.ts'
import { type HostReport, type Level, levelInForce, reportHost } from './host-report.ts'
import { workerPython } from './interpreter.ts'
import { findPython } from './python.ts'
import { describePackages, type PackageFacts, type SetupSettings, TEST_VENVS } from './setup.ts'
import { isBuilt } from './venv.ts'

/** The settings that decide whether the service can run. */
export type DiagnosisSettings = SetupSettings & { SANDBOX_LEVEL: Level | 'best'; SANDBOX_MIN_LEVEL: Level }

/** Something that is not there. */
export type Missing = {
  /** The service can't start without it. */
  needed: boolean
  /** What it is and how to get it, in one sentence. */
  sentence: string
}

export type Diagnosis = {
  node: string
  host: string
  /** The workers' interpreter and its packages; null before setup. */
  python: PackageFacts | null
  /** GPUs that the driver lists, whether torch can use them or not. */
  gpus: string[]
  /** The level that the service would use; null when it would refuse to start. */
  level: Level | null
  isolation: HostReport | null
  /** Environments of the tests that are made already. */
  test_environments: string[]
  missing: Missing[]
}

/** Look at the host. A failure to find something out is part of the answer. */
export async function diagnose(settings: DiagnosisSettings): Promise<Diagnosis> {
  const missing: Missing[] = []
  const orMissing = async <T>(question: Promise<T>): Promise<T | null> => {
    try {
      return await question
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      missing.push({ needed: true, sentence: error.message })
      return null
    }
  }
  const python = await orMissing(describeWorkers(settings))
  // Without an environment any Python can try the sandbox, which needs no package.
  const tryOut = python?.executable ?? (await orMissing(findPython(settings.FORKYARD_PYTHON)))?.executable
  const isolation = tryOut === undefined ? null : await orMissing(reportHost(tryOut))
  const level = isolation && levelInForce(isolation, settings.SANDBOX_LEVEL, settings.SANDBOX_MIN_LEVEL)
  const gpus = await listGpus()
  missing.push(...complaints(settings, { python, gpus, isolation, level }))
  return {
    node: process.versions.node,
    host: `${platform()} ${release()} ${arch()}`,
    python,
    gpus,
    level,
    isolation,
    test_environments: await builtTestVenvs(),
    missing,
  }
}

async function describeWorkers(settings: SetupSettings): Promise<PackageFacts> {
  return await describePackages(workerPython(settings))
}

function complaints(
  settings: DiagnosisSettings,
  { python, gpus, isolation, level }: Pick<Diagnosis, 'python' | 'gpus' | 'isolation' | 'level'>,
): Missing[] {
  const found: Missing[] = []
  if (isolation !== null && level === null) {
    found.push({
      needed: true,
      sentence: `The host gives ${isolation.levels.join(', ')}; the settings ask for ${settings.SANDBOX_LEVEL} and at least ${settings.SANDBOX_MIN_LEVEL} (SANDBOX_LEVEL, SANDBOX_MIN_LEVEL).`,
    })
  }
  if (python !== null && python.torch === null) {
    const wanted = settings.FORKYARD_TORCH !== 'none'
    found.push({
      needed: wanted,
      sentence: wanted
        ? `torch can't be imported by ${python.executable}: run \`npm run setup\`, or set FORKYARD_TORCH=none.`
        : 'torch is left out (FORKYARD_TORCH=none): the repl environment works without it.',
    })
  }
  if (gpus.length > 0 && python !== null && python.torch !== null && python.cuda_devices.length === 0) {
    found.push({
      needed: false,
      sentence: 'torch can not use the GPU: set FORKYARD_TORCH=cuda and run `npm run setup` for a build that can.',
    })
  }
  return found
}

async function listGpus(): Promise<string[]> {
  // No driver, no such command: then there is no GPU to list.
  const { exitCode, stdout } = await execa('nvidia-smi', ['-L'], { reject: false, stdin: 'ignore', timeout: 20_000 })
  return exitCode === 0 ? stdout.split('\n').filter(line => line.startsWith('GPU ')) : []
}

async function builtTestVenvs(): Promise<string[]> {
  const folders: string[] = []
  for (const { folder } of Object.values(TEST_VENVS)) if (await isBuilt(folder)) folders.push(folder)
  return folders
}
