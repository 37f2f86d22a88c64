/** Size of a folder that agent code fills, taken without stopping the event loop and whatever the folder holds. */

import { lstatSync } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { messageOf } from '../errors.ts'

/** Folders may nest this deep; far below what one path can name, so nothing hides under a path too long to open. */
const MAX_DEPTH = 64
/** Work between two turns of the event loop. */
const SLICE_MS = 2
/** The whole answer takes no longer than this. */
const ANSWER_LIMIT_MS = 5_000
/** Times the walk is tried when the service itself is short of something, and the pause between. */
const ATTEMPTS = 4
const RETRY_MS = 100
/** Entries that came and went count as nothing, but a walk meets no more of them than this many times the limit. */
const CHURN = 4
const BLOCK_BYTES = 512
const READ_ENTRIES = 256

/** It is no longer there, or no longer a folder. */
const GONE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])
const REFUSED: Readonly<Record<string, string>> = {
  EACCES: 'holds a folder that cannot be read',
  EPERM: 'holds a folder that cannot be read',
  ENAMETOOLONG: 'holds a path that is too long to open',
}

export type FolderLimits = { disk_bytes: number; inodes: number }

/** What a look found; `why` continues a sentence that begins with the folder, or says what failed. */
export type FolderFinding =
  | { verdict: 'within' | 'stopped' }
  | { verdict: 'past'; why: string }
  | { verdict: 'unknown'; why: string }

/**
 * Compare a folder with its limits. Never rejects, and answers within ANSWER_LIMIT_MS.
 *
 * A folder that can't be counted because of how it was made is past its limits:
 * one that is not readable, nests too deep, or changes faster than the walk. The
 * verdict is `unknown` where the service is at fault, and `stopped` once `signal`
 * is aborted.
 */
export async function inspectFolder(root: string, limits: FolderLimits, signal: AbortSignal): Promise<FolderFinding> {
  const giveUpAt = performance.now() + ANSWER_LIMIT_MS
  const late: FolderFinding = { verdict: 'unknown', why: `it took longer than ${ANSWER_LIMIT_MS} ms` }
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<FolderFinding>(resolve => {
    timer = setTimeout(() => resolve(late), ANSWER_LIMIT_MS)
  })
  const finding = await Promise.race([walkPatiently(root, limits, signal, giveUpAt), expiry])
  clearTimeout(timer)
  return finding.verdict === 'stopped' && !signal.aborted ? late : finding
}

async function walkPatiently(
  root: string,
  limits: FolderLimits,
  signal: AbortSignal,
  giveUpAt: number,
): Promise<FolderFinding> {
  const halted = () => signal.aborted || performance.now() > giveUpAt
  let finding: FolderFinding = { verdict: 'stopped' }
  for (let attempt = 1; attempt <= ATTEMPTS && !halted(); attempt++) {
    if (attempt > 1) await wait(RETRY_MS)
    finding = await walk(root, limits, halted)
    if (finding.verdict !== 'unknown') return finding
  }
  return finding
}

async function walk(root: string, limits: FolderLimits, halted: () => boolean): Promise<FolderFinding> {
  const past = `grew past ${limits.disk_bytes} bytes or ${limits.inodes} files`
  let bytes = 0
  let files = 0
  let met = 0
  let sliceEndsAt = performance.now() + SLICE_MS
  const todo: { path: Buffer; depth: number }[] = [{ path: Buffer.from(root), depth: 0 }]
  try {
    for (let folder = todo.pop(); folder !== undefined; folder = todo.pop()) {
      for await (const path of entriesOf(folder.path)) {
        if (performance.now() > sliceEndsAt) {
          await turn()
          if (halted()) return { verdict: 'stopped' }
          sliceEndsAt = performance.now() + SLICE_MS
        }
        met += 1
        if (met > limits.inodes * CHURN + READ_ENTRIES) {
          return { verdict: 'past', why: 'changes faster than it can be counted' }
        }
        const entry = look(path)
        if (entry === undefined) continue
        files += 1
        bytes += entry.blocks * BLOCK_BYTES
        if (files > limits.inodes || bytes > limits.disk_bytes) return { verdict: 'past', why: past }
        if (!entry.isDirectory()) continue
        if (folder.depth === MAX_DEPTH) {
          return { verdict: 'past', why: `holds folders nested deeper than ${MAX_DEPTH}` }
        }
        todo.push({ path, depth: folder.depth + 1 })
      }
    }
  } catch (error) {
    const refusal = REFUSED[codeOf(error) ?? '']
    if (refusal !== undefined) return { verdict: 'past', why: refusal }
    return { verdict: 'unknown', why: causeOf(error) }
  }
  return { verdict: 'within' }
}

/** Paths of what a folder holds, as bytes: a name need not be text. Nothing once the folder is gone. */
async function* entriesOf(folder: Buffer): AsyncGenerator<Buffer> {
  try {
    // Node takes 'buffer' here as in readdir; its types leave it out.
    const options = { encoding: 'buffer' as BufferEncoding, bufferSize: READ_ENTRIES }
    for await (const { name } of await opendir(folder, options)) {
      yield Buffer.concat([folder, Buffer.from('/'), Buffer.from(name)])
    }
  } catch (error) {
    if (!GONE.has(codeOf(error) ?? '')) throw error
  }
}

function look(path: Buffer): { blocks: number; isDirectory(): boolean } | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if (GONE.has(codeOf(error) ?? '')) return undefined
    throw error
  }
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** Without the path, which is the service's own affair. */
function causeOf(error: unknown): string {
  const code = codeOf(error)
  if (code !== null && error instanceof Error && 'syscall' in error) return `${code} (${String(error.syscall)})`
  return messageOf(error)
}
