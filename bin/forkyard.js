#!/usr/bin/env node
/** The command `forkyard`; everything is in src/cli.ts, which an old Node could not even parse. */

import './node-version.js'

await import('../src/cli.ts')
