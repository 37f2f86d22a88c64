/**
 * `npm run bench`: this service and what people would use instead, in one run on one machine.
 *
 * Only the ratios count; the times beside them say how long it took here.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/config.ts'
import { workerPython } from '../src/setup/interpreter.ts'
import { repositoryRoot } from '../src/setup/paths.ts'
import {
  measureHttpStep,
  measureIdle,
  measurePrintStep,
  measureReset,
  measureSocketStep,
  measureThroughput,
} from './episodes.ts'
import { startService } from './service.ts'
import { freshTorchBytes, measureFreshTorch, measurePipePrint } from './yardsticks.ts'

const MIB = 2 ** 20
const IDLE_EPISODES = 200
const PRINTED_MIB = 50

const python = workerPython(readConfig())
const server = await startService({})
const { url } = server
const details = (await (await fetch(`${url}/health/details`)).json()) as { executor: unknown }

const fresh = await measureFreshTorch(python, 15)
const freshMib = (await freshTorchBytes(python)) / MIB
const reset = await measureReset(url, 200)
const http = await measureHttpStep(url, 2000)
const socket = await measureSocketStep(url, 2000)
const printed = await measurePrintStep(url, PRINTED_MIB, 15)
const piped = await measurePipePrint(python, PRINTED_MIB, 15)
const perSecond = await measureThroughput(url, 4, 10)
const idle = await measureIdle(url, server.pid, IDLE_EPISODES)
const freshAgain = await measureFreshTorch(python, 5)
await server.close()

const machine = {
  cores: cpus().length,
  cpu: cpus()[0]?.model ?? 'unknown',
  memory_gib: Math.round(totalmem() / 2 ** 30),
  kernel: release(),
  node: process.version,
  executor: details.executor,
}
const peer = fresh.p50_ms
const rows = [
  ['fresh process + import torch', fresh.n, fresh.p50_ms, fresh.p99_ms, 1],
  ['the same at the end of the run', freshAgain.n, freshAgain.p50_ms, freshAgain.p99_ms, peer / freshAgain.p50_ms],
  ['reset over HTTP, warm spare', reset.n, reset.p50_ms, reset.p99_ms, peer / reset.p50_ms],
  ['step `pass` over HTTP', http.n, http.p50_ms, http.p99_ms, peer / http.p50_ms],
  ['step `pass` over WebSocket', socket.n, socket.p50_ms, socket.p99_ms, peer / socket.p50_ms],
  [
    `reset beside ${idle.episodes} idle episodes`,
    idle.reset.n,
    idle.reset.p50_ms,
    idle.reset.p99_ms,
    peer / idle.reset.p50_ms,
  ],
] as const

const lines = [
  '| figure | n | p50 ms | p99 ms | times faster than a fresh process |',
  '| --- | ---: | ---: | ---: | ---: |',
  ...rows.map(
    ([name, n, p50, p99, ratio]) => `| ${name} | ${n} | ${p50.toFixed(2)} | ${p99.toFixed(2)} | ${ratio.toFixed(0)} |`,
  ),
  '',
  `Whole episodes (reset, three steps, close; 4 clients): ${perSecond.toFixed(1)} per second, ${((perSecond * peer) / 1000).toFixed(0)} times one fresh process after the other.`,
  `A step that prints ${PRINTED_MIB} MiB: p50 ${printed.p50_ms.toFixed(0)} ms; python -c piped to cat ${piped.p50_ms.toFixed(0)} ms: ${(printed.p50_ms / piped.p50_ms).toFixed(2)} times.`,
  `Idle episodes: ${idle.episodes} held, ${idle.private_mib_each.toFixed(1)} MiB private each; a fresh process with torch has ${freshMib.toFixed(0)} MiB resident.`,
  `Step beside them: p50 ${idle.step_p50_ms.toFixed(2)} ms, ${(idle.step_p50_ms / socket.p50_ms).toFixed(2)} times that of a lone episode.`,
  `Machine: ${JSON.stringify(machine)}`,
]
process.stdout.write(`${lines.join('\n')}\n`)

const folder = join(repositoryRoot, 'bench', 'out')
mkdirSync(folder, { recursive: true })
const file = join(folder, `${new Date().toISOString().replaceAll(':', '-')}.json`)
writeFileSync(
  file,
  JSON.stringify(
    { machine, fresh, fresh_mib: freshMib, reset, http, socket, printed, piped, episodes_per_second: perSecond, idle },
    null,
    2,
  ),
)
process.stderr.write(`written to ${file}\n`)
