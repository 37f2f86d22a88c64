/** Everything that has to be installed beside the Node packages. */

import { execa } from 'execa'
import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import { type InterpreterSettings, workerPython } from './interpreter.ts'
import { pythonTool } from './paths.ts'
import { pipInstall, updateOldPip } from './pip.ts'
import type { Progress } from './progress.ts'
import { findPython, type Interpreter } from './python.ts'
import { readRequirements } from './requirements.ts'
import { installWithTorch, type TorchChoice } from './torch.ts'
import { ensureVenv } from './venv.ts'

/** The settings of `src/config.ts` that say what to install. */
export type SetupSettings = InterpreterSettings & {
  FORKYARD_TORCH: TorchChoice
  FORKYARD_TORCH_INDEX?: string | undefined
}

/** Environments that only the tests and checks use: folder and requirements. */
export const TEST_VENVS = {
  openenv: { folder: '.venv-openenv', requirements: 'python/requirements-openenv.txt' },
  openenvCore: { folder: '.venv-openenv-core', requirements: 'python/requirements-openenv-core.txt' },
  tools: { folder: '.venv-tools', requirements: 'python/requirements-dev.txt' },
} as const

/** What an interpreter says about the packages that workers import. */
export const PackageFacts = z.object({
  executable: z.string(),
  version: z.string(),
  torch: z.string().nullable(),
  numpy: z.string().nullable(),
  cuda_devices: z.array(z.string()),
})
export type PackageFacts = z.infer<typeof PackageFacts>

/**
 * Make sure that workers have a Python to run on. Takes milliseconds when they have.
 *
 * @returns Absolute path of that Python. With FORKYARD_PYTHON it is the host's own and nothing is installed.
 * @throws {ServiceError} `missing_tool` or `invalid_config`, in one sentence.
 */
export async function ensureWorkerPython(settings: SetupSettings, progress: Progress): Promise<string> {
  if (settings.FORKYARD_PYTHON !== undefined) {
    const python = workerPython(settings)
    await findPython(python, { forVenv: false })
    return python
  }
  const { FORKYARD_TORCH: torch, FORKYARD_TORCH_INDEX: index } = settings
  return await ensureVenv({
    folder: settings.FORKYARD_VENV,
    requirements: await readRequirements('python/requirements.txt'),
    variant: torch,
    python: () => findPython(),
    install: async (python, requirements, interpreter) => {
      await updateOldPip(python, interpreter, progress)
      await installWithTorch(python, requirements, { torch, index }, progress)
      await checkPackages(python, torch)
    },
    progress,
  })
}

/**
 * Make the environments that the tests with published clients and the Python checks use.
 *
 * @throws {ServiceError} As `ensureWorkerPython`.
 */
export async function ensureTestVenvs(settings: SetupSettings, progress: Progress): Promise<void> {
  for (const { folder, requirements } of Object.values(TEST_VENVS)) {
    await ensureVenv({
      folder,
      requirements: await readRequirements(requirements),
      variant: 'test',
      python: () => findPython(settings.FORKYARD_PYTHON),
      install: async (python, lines, interpreter: Interpreter) => {
        await updateOldPip(python, interpreter, progress)
        progress.stage(`installing ${lines.join(' and ')}`)
        await pipInstall(python, lines, progress)
      },
      progress,
    })
  }
}

/**
 * Import the workers' packages once, in seconds.
 *
 * @throws {ServiceError} `missing_tool` when the interpreter or an import crashes.
 */
export async function describePackages(python: string): Promise<PackageFacts> {
  const { exitCode, stdout, stderr } = await execa(python, ['-I', pythonTool('describe_python.py'), '--packages'], {
    reject: false,
    stdin: 'ignore',
  })
  if (exitCode !== 0) {
    const said = stderr.trim().split('\n').at(-1) ?? ''
    throw new ServiceError('missing_tool', `${python} can't import its packages: ${said}`)
  }
  return PackageFacts.parse(JSON.parse(stdout))
}

/** An installed torch may still miss a library of the system; that shows now and not in the first episode. */
async function checkPackages(python: string, torch: TorchChoice): Promise<void> {
  const facts = await describePackages(python)
  const missing = [facts.numpy === null && 'numpy', torch !== 'none' && facts.torch === null && 'torch'].filter(Boolean)
  if (missing.length > 0) {
    throw new ServiceError('missing_tool', `${missing.join(' and ')} was installed but can't be imported by ${python}.`)
  }
}
