/**
 * Private Python environments: made when they are missing or out of date, left alone when not.
 *
 * A virtual environment can't be moved, so it is built where it stays. A record
 * inside says whether the build ended and what it was made from. An interrupted
 * build has no such record and is made again from nothing.
 */

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { z } from 'zod'
import { ServiceError } from '../errors.ts'
import { runBound } from './bound-process.ts'
import { parseJson } from './json-text.ts'
import { withLock } from './lock.ts'
import { inRepository, interpreterIn, repositoryRoot } from './paths.ts'
import type { Progress } from './progress.ts'
import type { Interpreter } from './python.ts'

const RECORD_NAME = 'forkyard.json'
/** Raised when the way of building changes, so that older environments are made again. */
const BUILD_FORMAT = 1

const BuildRecord = z.discriminatedUnion('state', [
  z.object({ state: z.literal('building') }),
  z.object({
    state: z.literal('ready'),
    key: z.string(),
    interpreter: z.string().describe('Real path of the interpreter that it was made from.'),
    version: z.string(),
  }),
])
type BuildRecord = z.infer<typeof BuildRecord>

/** What an environment is made from. */
export type VenvRequest = {
  /** Relative to the repository, or absolute. */
  folder: string
  requirements: string[]
  /** Anything else that the result depends on. */
  variant: string
  /** Asked only when something has to be made. */
  python: () => Promise<Interpreter>
  /** Puts the requirements into the new environment. */
  install: (python: string, requirements: string[], interpreter: Interpreter) => Promise<void>
  progress: Progress
}

/**
 * Make the environment unless it is there already, made from the same things.
 *
 * Safe to interrupt and to run twice at once: the second waits for the first.
 *
 * @returns Absolute path of its interpreter.
 * @throws {ServiceError} `missing_tool` when it can't be made; `invalid_config` when the folder belongs to somebody else.
 */
export async function ensureVenv(request: VenvRequest): Promise<string> {
  const folder = inRepository(request.folder)
  const python = interpreterIn(folder)
  const key = keyOf(request)
  if (await isReady(folder, key)) return python

  const name = relative(repositoryRoot, folder)
  const onWait = (pid: number) => request.progress.stage(`process ${pid} is making ${name}; waiting for it`)
  await withLock(`${folder}.lock`, onWait, async () => {
    if (await isReady(folder, key)) return
    const interpreter = await request.python()
    await emptyOwnFolder(folder, name)
    request.progress.stage(`making ${name} with Python ${interpreter.version} (${interpreter.executable})`)
    await runBound(interpreter.executable, 'venv', [folder])
    await request.install(python, request.requirements, interpreter)
    const { version } = interpreter
    await writeRecord(folder, { state: 'ready', key, interpreter: await realpath(python), version })
    request.progress.stage(`${name} is ready`)
  })
  return python
}

/** Whether an environment is there and complete, whatever it was made from. */
export async function isBuilt(folder: string): Promise<boolean> {
  return (await readRecord(inRepository(folder)))?.state === 'ready'
}

function keyOf({ requirements, variant }: VenvRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([BUILD_FORMAT, requirements, variant]))
    .digest('hex')
}

async function isReady(folder: string, key: string): Promise<boolean> {
  const record = await readRecord(folder)
  if (record?.state !== 'ready' || record.key !== key) return false
  // The interpreter behind it may have been upgraded or removed since.
  const python = interpreterIn(folder)
  return existsSync(python) && (await realpath(python)) === record.interpreter
}

async function readRecord(folder: string): Promise<BuildRecord | undefined> {
  const path = join(folder, RECORD_NAME)
  if (!existsSync(path)) return undefined
  return BuildRecord.safeParse(parseJson(await readFile(path, 'utf8'))).data
}

async function writeRecord(folder: string, record: BuildRecord): Promise<void> {
  const path = join(folder, RECORD_NAME)
  await writeFile(`${path}.new`, JSON.stringify(record))
  await rename(`${path}.new`, path)
}

/** Start from an empty folder; one that setup did not make is refused, since its content may be precious. */
async function emptyOwnFolder(folder: string, name: string): Promise<void> {
  if (existsSync(folder) && !existsSync(join(folder, RECORD_NAME)) && (await readdir(folder)).length > 0) {
    throw new ServiceError(
      'invalid_config',
      `${name} was not made by setup: move it away, or keep it and name its bin/python in FORKYARD_PYTHON.`,
    )
  }
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await writeRecord(folder, { state: 'building' })
}
