/** The published clients, unmodified, against real servers with real workers. */

import { after, before, suite } from 'node:test'
import { checkTests } from './checks.ts'
import type { ClientBench } from './client-bench.ts'
import { episodeTests } from './episodes.ts'
import { type ClientPackage, missing, PACKAGES, PythonDriver } from './python-driver.ts'
import { type RunningServer, serve } from './serve.ts'
import { toolTests } from './tools.ts'

// Importing a client takes seconds: one process per version serves all groups, and the versions run side by side.
suite('published clients', { concurrency: PACKAGES.length }, () => {
  let server: RunningServer
  let production: RunningServer
  before(async () => {
    server = await serve()
    production = await serve({ FORKYARD_MODE: 'production' })
  })
  after(() => Promise.all([server.close(), production.close()]))

  for (const client of PACKAGES) {
    suite(client.name, { skip: missing(client), concurrency: false }, () => clientSuite(client))
  }

  function clientSuite(client: ClientPackage): void {
    let driver: PythonDriver
    before(() => {
      driver = new PythonDriver(client)
    })
    after(() => driver.close())

    const bench: ClientBench = {
      client,
      get url() {
        return server.url
      },
      get productionUrl() {
        return production.url
      },
      run: (scenario, baseUrl, params) => driver.run(scenario, baseUrl, params),
    }
    suite('episodes', () => episodeTests(bench))
    suite('tools', () => toolTests(bench))
    suite('checks', () => checkTests(bench))
  }
})
