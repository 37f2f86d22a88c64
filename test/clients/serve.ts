/** A real server on a free port. */

import { readConfig } from '../../src/config.ts'
import { type RunningServer, startServer } from '../../src/server.ts'

export type { RunningServer }

/**
 * Start one, with real workers. They don't import torch beforehand: nothing here needs it, and it takes seconds.
 *
 * @param settings Environment variables that differ from the defaults.
 */
export function serve(settings: NodeJS.ProcessEnv = {}): Promise<RunningServer> {
  return startServer(readConfig({ PORT: '0', FORKYARD_TORCH: 'none', ...settings }))
}
