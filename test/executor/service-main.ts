/** A server process to be killed: opens two episodes with children of their own and says so. */

import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { startExecutor } from '../../src/start-executor.ts'

const before = readdirSync(tmpdir())
const executor = await startExecutor(readConfig(), line => process.stderr.write(`${line}\n`))
const folder = readdirSync(tmpdir()).find(name => name.startsWith('forkyard-') && !before.includes(name))
for (let count = 0; count < 2; count++) {
  const worker = await executor.open({
    preload: 'base',
    variables: {},
    files: {},
    endings: true,
    call_helpers: [],
    seed: null,
    onCall: () => Promise.reject(new Error('none')),
  })
  await worker.run({ code: 'import subprocess\nsubprocess.Popen(["sleep", "1000"])', limit_ms: 5000 })
  // Busy, so that the worker itself can't notice that the service is gone.
  void worker.run({ code: 'while True: pass', limit_ms: 40_000 })
}
process.stdout.write(`${join(tmpdir(), folder ?? '')}\n`)
