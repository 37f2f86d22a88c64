import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { openExecutor, run, type TestExecutor } from './open-executor.ts'

/** Finds the frame socket and writes to it, as agent code could. */
const SEND = `
import os, stat, signal, json
fd = next(n for n in range(3, 64) if os.path.exists(f"/proc/self/fd/{n}") and stat.S_ISSOCK(os.fstat(n).st_mode))
os.set_blocking(fd, True)
def send(data):
    while data: data = data[os.write(fd, data):]
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
`

const CASES: [title: string, code: string][] = [
  [
    'calls without end whose answers nobody reads',
    'n = 0\nwhile True:\n  n += 1\n  send(json.dumps({"type": "call", "id": ID, "call": n, "name": "llm_query", "arguments": {"prompt": "x" * 5000}}).encode() + b"\\n")',
  ],
  [
    'one call number used twice',
    'for _ in range(2): send(json.dumps({"type": "call", "id": ID, "call": 1, "name": "slow", "arguments": {}}).encode() + b"\\n")\nimport time; time.sleep(9)',
  ],
  [
    'a frame of nothing but structure',
    'send(b\'{"type":"call","id":%d,"call":1,"name":"x","arguments":{"a":[\' % ID + b"[]," * 2_000_000 + b"0]}}\\n")\nimport time; time.sleep(9)',
  ],
  [
    'a result with more names than any has',
    'send(json.dumps({"type": "result", "id": ID, "exception": None, "interrupted": False, "locals": {}, "variables": ["v"] * 20_000, "answer": None}).encode() + b"\\n")\nimport time; time.sleep(9)',
  ],
  ['a flood of final frames', 'while True: send(b\'{"type":"final","id":%d,"value":"x"}\\n\' % ID)'],
  ['a line without an end', 'block = b"x" * 2**20\nwhile True: send(block)'],
  [
    'half a frame and the end of the socket',
    'send(b\'{"type":"res\')\nimport socket\nsocket.socket(fileno=os.dup(fd)).shutdown(socket.SHUT_RDWR)\nimport time; time.sleep(9)',
  ],
]

describe('hostile frames', { concurrency: 1 }, () => {
  let service: TestExecutor
  let worker: EpisodeWorker
  before(async () => {
    service = await openExecutor({ STEP_GRACE_S: '0.3' })
    worker = await service.open({
      call_helpers: ['llm_query'],
      onCall: ({ name }) => (name === 'slow' ? new Promise(() => undefined) : Promise.resolve('y'.repeat(5000))),
    })
  })
  after(() => service.executor.close())

  for (const [title, code] of CASES) {
    test(`${title} end the worker, cost the service little, and the next step works`, async () => {
      const heapBefore = process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers
      const outcome = await run(
        worker,
        `${SEND}import gc\nfrom worker.calls import Helpers\nID = next(o.cell for o in gc.get_objects() if isinstance(o, Helpers))\n${code}`,
        8000,
      )
      assert.ok(['protocol_violation', 'exited'].includes(outcome.reason), JSON.stringify(outcome).slice(0, 600))
      assert.equal(outcome.state_kept, false)
      const grown = process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers - heapBefore
      // Not collected yet: one line of the largest size, and the halves it grew from.
      assert.ok(grown < 400 * 2 ** 20, `grew by ${grown}`)
      assert.equal((await run(worker, 'print("alive")')).stdout.text, 'alive\n')
    })
  }
})
