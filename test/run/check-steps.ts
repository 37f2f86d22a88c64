/** The checks that are not tests: format, lint and types of both languages. */

import { readdirSync } from 'node:fs'
import { execa } from 'execa'
import { inRepository, interpreterIn, repositoryRoot } from '../../src/setup/paths.ts'
import { TEST_VENVS } from '../../src/setup/setup.ts'
import { isBuilt } from '../../src/setup/venv.ts'
import type { SuiteResult } from './suite.ts'

type Step = { name: string; command: string; args: string[]; env?: Record<string, string> }

const PYTHON_FOLDERS = ['python', 'test/python']
const TASKS = 'python/tasks'
/** What all tasks are measured with: checked with the rest. */
const GRADING = 'grading'
const RUFF_CONFIG = ['--config', 'python/pyproject.toml']

const nodeTool = (name: string): string => inRepository(`node_modules/.bin/${name}`)

function stepsFor(mode: 'check' | 'fix', hasPythonTools: boolean): Step[] {
  const fix = mode === 'fix'
  const python = interpreterIn(TEST_VENVS.tools.folder)
  const ruff = (name: string, args: string[]) => ({
    name,
    command: python,
    args: ['-m', 'ruff', ...args, ...RUFF_CONFIG, ...PYTHON_FOLDERS],
  })
  const steps: Step[] = [
    {
      name: 'biome',
      command: nodeTool('biome'),
      args: ['check', '--error-on-warnings', ...(fix ? ['--write'] : []), '.'],
    },
  ]
  if (!fix) steps.push({ name: 'types', command: nodeTool('tsc'), args: ['--noEmit'] })
  if (!hasPythonTools) return steps
  steps.push(
    ruff('ruff format', ['format', ...(fix ? [] : ['--check'])]),
    ruff('ruff check', ['check', ...(fix ? ['--fix'] : [])]),
  )
  if (!fix) {
    const args = ['-m', 'mypy', '--config-file', 'python/pyproject.toml']
    steps.push({ name: 'mypy', command: python, args })
    for (const folder of taskFolders()) {
      // An evaluation imports what lies beside it by its bare name.
      steps.push({ name: `mypy ${folder}`, command: python, args: [...args, folder], env: { MYPYPATH: folder } })
    }
  }
  return steps
}

function taskFolders(): string[] {
  const folders = readdirSync(inRepository(TASKS), { withFileTypes: true }).filter(entry => entry.isDirectory())
  return folders.map(({ name }) => `${TASKS}/${name}`).filter(folder => folder !== `${TASKS}/${GRADING}`)
}

/** Run every check, also after one has failed. Those of Python need the tools that `setup --tests` installs. */
export async function runChecks(mode: 'check' | 'fix'): Promise<SuiteResult> {
  const hasPythonTools = await isBuilt(TEST_VENVS.tools.folder)
  const result: SuiteResult = { name: 'checks', passed: 0, failed: 0, skipped: 0 }
  for (const { name, command, args, env = {} } of stepsFor(mode, hasPythonTools)) {
    console.log(`--- ${name}`)
    const { exitCode } = await execa(command, args, {
      cwd: repositoryRoot,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
      reject: false,
    })
    if (exitCode === 0) result.passed += 1
    else result.failed += 1
  }
  if (!hasPythonTools) {
    console.log('--- Python checks skipped: `npm run setup -- --tests` installs ruff and mypy')
    result.skipped += 1
  }
  return result
}
