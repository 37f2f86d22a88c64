/** The figures of one server: resets, steps, idle episodes. */

import { descendants } from '../test/process-table.ts'
import { privateBytes } from './processes.ts'
import { type Summary, sample, summarize } from './statistics.ts'
import { HttpClient, SocketClient } from './wire-clients.ts'

const PASS = { code: 'pass' }

/** Reset over HTTP with a warm spare at hand: the pause before each lets the pool refill. */
export async function measureReset(url: string, count: number): Promise<Summary> {
  const client = new HttpClient(url)
  const samples: number[] = []
  for (let index = -3; index < count; index++) {
    await spareIsReady(url)
    const startedAt = performance.now()
    const reply = await client.post('/repl/reset', {})
    const took = performance.now() - startedAt
    if (index >= 0) samples.push(took)
    await client.delete(`/repl/episodes/${reply.metadata.episode_id}`)
  }
  client.close()
  return summarize(samples)
}

/** One step of `pass` over one HTTP connection. */
export async function measureHttpStep(url: string, count: number): Promise<Summary> {
  const client = new HttpClient(url)
  const { episode_id } = (await client.post('/repl/reset', {})).metadata
  const samples = await sample(count, 50, () => client.post('/repl/step', { episode_id, action: PASS }))
  await client.delete(`/repl/episodes/${episode_id}`)
  client.close()
  return summarize(samples)
}

/** One step of `pass` over a WebSocket. */
export async function measureSocketStep(url: string, count: number): Promise<Summary> {
  const client = await SocketClient.connect(`${url}/repl`)
  await client.send('reset', {})
  const samples = await sample(count, 50, () => client.send('step', PASS))
  client.close()
  return summarize(samples)
}

/** One step that prints `mib` MiB. */
export async function measurePrintStep(url: string, mib: number, count: number): Promise<Summary> {
  const client = await SocketClient.connect(`${url}/repl`)
  await client.send('reset', {})
  const samples = await sample(count, 1, () => client.send('step', { code: `print("x" * ${mib * 2 ** 20})` }))
  client.close()
  return summarize(samples)
}

/** Whole episodes per second: connect, reset, three steps, close, by clients side by side. */
export async function measureThroughput(url: string, clients: number, seconds: number): Promise<number> {
  const deadline = performance.now() + seconds * 1000
  let episodes = 0
  const startedAt = performance.now()
  const play = async () => {
    while (performance.now() < deadline) {
      const client = await SocketClient.connect(`${url}/repl`)
      await client.send('reset', {})
      for (let step = 0; step < 3; step++) await client.send('step', PASS)
      client.close()
      episodes += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, play))
  return episodes / ((performance.now() - startedAt) / 1000)
}

export type IdleFigures = {
  episodes: number
  open_p50_ms: number
  private_mib_each: number
  step_p50_ms: number
  reset: Summary
}

/** Hold many episodes, each after one step, and look at memory, and at a step and a reset beside them. */
export async function measureIdle(url: string, server: number, count: number): Promise<IdleFigures> {
  const before = new Set(descendants(server).map(({ pid }) => pid))
  const clients: SocketClient[] = []
  const opened = await sample(count, 0, async () => {
    const client = await SocketClient.connect(`${url}/repl`)
    clients.push(client)
    await client.send('reset', {})
    await client.send('step', { code: 'x = 1' })
  })
  const fresh = descendants(server).flatMap(({ pid }) => (before.has(pid) ? [] : [pid]))
  const bytes = fresh.reduce((sum, pid) => sum + privateBytes(pid), 0)
  const last = clients.at(-1)
  const steps = last === undefined ? [Number.NaN] : await sample(300, 20, () => last.send('step', PASS))
  const reset = await measureReset(url, 50)
  for (const client of clients) client.close()
  return {
    episodes: count,
    open_p50_ms: summarize(opened).p50_ms,
    private_mib_each: bytes / count / 2 ** 20,
    step_p50_ms: summarize(steps).p50_ms,
    reset,
  }
}

async function spareIsReady(url: string): Promise<void> {
  for (;;) {
    const details = (await (await fetch(`${url}/health/details`)).json()) as Details
    const { spare, starting } = details.executor.workers
    if (spare > 0 && starting === 0) return
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

type Details = { executor: { workers: { spare: number; starting: number } } }
