/** Takes the lock that it is given, says `held`, and lets go when its input ends. */

import { once } from 'node:events'
import { withLock } from '../../src/setup/lock.ts'

const [path = ''] = process.argv.slice(2)
await withLock(
  path,
  () => undefined,
  async () => {
    console.log('held')
    process.stdin.resume()
    await once(process.stdin, 'end')
  },
)
