/** One client version and the servers it is tried against. */

import type { ClientPackage, PythonDriver } from './python-driver.ts'

/** What a group of tests works with. Everything but `client` is there once tests run, not while they are defined. */
export type ClientBench = {
  readonly client: ClientPackage
  /** Address of a server in simulation mode, the default environment at its root; no trailing slash. */
  readonly url: string
  /** Address of a server in production mode. */
  readonly productionUrl: string
  /** Run a scenario of `python/`; see `PythonDriver.run`. */
  readonly run: PythonDriver['run']
}
