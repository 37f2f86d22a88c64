/** Builds the edge around a probe environment; everything is closed when the test ends. */

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { type AppOptions, buildApps } from '../../src/app.ts'
import { SessionTable } from '../../src/environment/sessions.ts'
import { createProbe, type Probe } from './probe-environment.ts'

export type Service = { app: FastifyInstance; probe: Probe; sessions: SessionTable }

export type ServiceOptions = Partial<AppOptions> & {
  capacity?: number
  idleMs?: number
  lifetimeMs?: number
  root?: string
}

/** An app that is never listened to; use `inject`. */
export async function build(t: TestContext, given: ServiceOptions = {}): Promise<Service> {
  const probe = createProbe()
  const { capacity = 8, idleMs = 0, lifetimeMs = 0, root = 'probe', ...rest } = given
  const environments = rest.environments ?? [probe.environment]
  const sessions = new SessionTable({ environments: [...environments], capacity, idleMs, lifetimeMs })
  const options: AppOptions = {
    sessions,
    environments,
    mode: 'simulation',
    health: () => ({ status: 'healthy', details: {} }),
    maxBodyMib: 128,
    pingMs: 20_000,
    logLevel: 'silent',
    webInterface: null,
    ...rest,
  }
  const [app] = (await buildApps(options, [{ environment: root }])).map(face => face.app)
  assert.ok(app !== undefined)
  t.after(async () => {
    sessions.close()
    await app.close()
  })
  return { app, probe, sessions }
}

/** An app on a free port of the loopback. */
export async function listen(t: TestContext, options: ServiceOptions = {}): Promise<Service & { url: string }> {
  const service = await build(t, options)
  return { ...service, url: await service.app.listen({ host: '127.0.0.1', port: 0 }) }
}
