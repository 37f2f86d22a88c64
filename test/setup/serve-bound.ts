/** Runs Python's web server as a bound module and writes its port. */

import { tryBound } from '../../src/setup/bound-process.ts'

const [python = ''] = process.argv.slice(2)
await tryBound(python, 'http.server', ['0', '--bind', '127.0.0.1'], {
  onLine: line => {
    const port = /port (\d+)/.exec(line)?.[1]
    if (port !== undefined) console.log(port)
  },
})
