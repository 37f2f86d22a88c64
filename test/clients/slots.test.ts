/** A full server and vanished peers, as the published clients see them. */

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { descendants, type ProcessEntry, settled } from '../process-table.ts'
import { missing, PACKAGES, PythonDriver } from './python-driver.ts'
import { type RunningServer, serve } from './serve.ts'

const CAPACITY = 2

type Full = { refusal: string; still_served: string; attempts_after_close: number; after_close: string }
type Vanished = { refusal: string; attempts: number; served: string; frozen_socket_open: boolean }

for (const client of PACKAGES) {
  suite(`slots of ${client.name}`, { skip: missing(client) }, () => {
    let server: RunningServer
    let driver: PythonDriver
    let withoutEpisodes: number[]

    before(async () => {
      driver = new PythonDriver(client)
      // No spares: the workers in the process table are then those of episodes.
      server = await serve({ MAX_CONCURRENT_ENVS: String(CAPACITY), WARM_SPARES: '0', SOCKET_PING_S: '0.25' })
      withoutEpisodes = pidsOf(descendants(process.pid, driver.pid))
    })
    after(() => Promise.all([driver.close(), server.close()]))

    test('a client beyond the capacity is told so, and a closed client frees its slot', async () => {
      const seen = await driver.run<Full>('slots.full', server.url, { capacity: CAPACITY })
      assert.equal(
        seen.refusal,
        'RuntimeError: Server error: Server at capacity: 2/2 sessions active. ' +
          'Cannot accept new connections. (code: CAPACITY_REACHED)',
      )
      assert.equal(seen.still_served, 'served')
      assert.equal(seen.after_close, 'served')
    })

    test('peers that vanish in the middle of a step free their slots at once', async () => {
      const seen = await driver.run<{ failures: string[]; served: string; waited_s: number }>(
        'slots.vanish_in_a_step',
        server.url,
      )
      for (const failure of seen.failures) assert.match(failure, /^ConnectionClosed/)
      assert.equal(seen.served, 'served')
      assert.ok(seen.waited_s < 10, `waited ${seen.waited_s} s`)
    })

    test('peers that vanish without closing give back slots and processes', async () => {
      const seen = await driver.run<Vanished>('slots.vanish', server.url)
      assert.match(seen.refusal, /CAPACITY_REACHED/)
      assert.equal(seen.served, 'served')
      assert.ok(seen.frozen_socket_open, 'the frozen peer closed by itself')
      const left = await settled(entries => entries.length <= withoutEpisodes.length, driver.pid)
      assert.deepEqual(pidsOf(left), withoutEpisodes, `left: ${JSON.stringify(left)}`)
      assert.deepEqual(
        left.filter(({ state }) => state === 'Z'),
        [],
        'zombies are left',
      )
    })
  })
}

const pidsOf = (entries: ProcessEntry[]) => entries.map(({ pid }) => pid).sort((one, other) => one - other)
