import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { openExecutor, run, type TestExecutor } from './open-executor.ts'

/** What honest agent code does to the interpreter it shares with the worker; afterwards the variables are still there. */
const KEPT: { title: string; code: string; exception?: RegExp; stderr?: RegExp }[] = [
  {
    title: 'json.dumps is replaced',
    code: 'import json, functools\njson.dumps = functools.partial(json.dumps, indent=2)',
  },
  { title: 'os.getpid is mocked', code: 'import os\nos.getpid = lambda: 42' },
  { title: 'linecache.cache is None', code: 'import linecache\nlinecache.cache = None' },
  {
    title: 'the recursion limit is lowered',
    code: 'import sys\nsys.setrecursionlimit(60)',
    stderr: /put back.*recursion limit/,
  },
  {
    title: 'a trace function raises',
    code: 'import sys\ndef trace(f, e, a): raise ValueError("t")\nsys.settrace(trace)',
    exception: /^(ValueError: t|$)/,
  },
  {
    title: 'a profile function raises',
    code: 'import sys\ndef profile(f, e, a): raise ValueError("p")\nsys.setprofile(profile)',
    exception: /^(ValueError: p|$)/,
  },
  {
    title: 'answer is a dict whose methods raise',
    code: 'class D(dict):\n  def get(self, *a): 1 / 0\n  def __getitem__(self, k): 1 / 0\nanswer = D()',
  },
  {
    title: 'a global is named by a subclass of str',
    code: 'class S(str):\n  def startswith(self, *a): 1 / 0\nglobals()[S("zz")] = 1',
  },
  {
    title: 'the flush of sys.stdout raises KeyboardInterrupt',
    code: 'import sys, io\nclass S(io.StringIO):\n  def flush(self): raise KeyboardInterrupt\nsys.stdout = S()',
    stderr: /could not be flushed: S \(KeyboardInterrupt\)/,
  },
  { title: 'sys.stdout is detached', code: 'import sys\nbuffer = sys.stdout.detach()' },
  {
    title: 'a timer goes on with a handler that raises',
    code: 'import signal\ndef h(*a): raise TimeoutError("late")\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)',
    exception: /^(TimeoutError: late|$)/,
  },
  {
    title: 'a thread adds and removes globals',
    code: `import threading, sys
sys.setswitchinterval(1e-6)
for i in range(3000): globals()["v%d" % i] = i
def churn(g=globals()):
  while True:
    g["t"] = 1
    del g["t"]
threading.Thread(target=churn, daemon=True).start()`,
  },
  {
    title: 'a thread changes a dict that cells mention',
    code: `import threading, sys, itertools
sys.setswitchinterval(1e-5)
metrics = {}
def churn():
  for i in itertools.count():
    metrics[i % 977] = i
    metrics.pop((i + 400) % 977, None)
threading.Thread(target=churn, daemon=True).start()`,
  },
]

/** Code that hangs where the worker works for the cell; the interrupt ends it and the variables stay. */
const INTERRUPTED: { title: string; code: string }[] = [
  {
    title: 'a flush that never returns',
    code: 'import sys, io\nclass S(io.StringIO):\n  def flush(self):\n    while True: pass\nsys.stdout = S()',
  },
  { title: 'a repr that never returns', code: 'class R:\n  def __repr__(self):\n    while True: pass\nr = R()' },
  {
    title: 'a __del__ that never returns',
    code: 'class D:\n  def __del__(self):\n    while True: pass\ndef f():\n  d = D()\n  raise ValueError\nf()',
  },
  {
    title: 'a signal mask of an earlier cell',
    code: 'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nNEXT\nwhile True: pass',
  },
  {
    title: 'join() of threads that wait for replies, after which the cell goes on for a while',
    code: `import threading
ts = [threading.Thread(target=llm_query, args=("hang",), daemon=True) for _ in range(4)]
for t in ts: t.start()
try: ts[0].join()
finally: n = sum(range(100_000))`,
  },
]

/** An answer that does not come. */
function never(): void {
  // Neither resolves nor rejects.
}

describe('a worker and what agent code does to its interpreter', { concurrency: 1 }, () => {
  let service: TestExecutor
  const withWorker = async (body: (worker: EpisodeWorker) => Promise<void>) => {
    const worker = await service.open({
      call_helpers: ['llm_query'],
      onCall: ({ arguments: given }) =>
        given.prompt === 'hang' ? new Promise(never) : Promise.resolve(`reply to ${String(given.prompt).length}`),
    })
    try {
      await body(worker)
    } finally {
      worker.close()
    }
  }
  before(async () => {
    service = await openExecutor({ STEP_GRACE_S: '1', STEP_CEILING_S: '8' })
  })
  after(() => service.executor.close())

  for (const { title, code, exception, stderr } of KEPT) {
    test(`variables are kept when ${title}`, () =>
      withWorker(async worker => {
        await run(worker, 'x = 41')
        const outcome = await run(worker, code)
        assert.match(outcome.exception ?? '', exception ?? /^$/)
        assert.equal(outcome.state_kept, true, JSON.stringify(outcome))
        if (stderr !== undefined) assert.match(outcome.stderr.text, stderr)
        for (let step = 0; step < 5; step++) {
          const next = await run(worker, 'n = len(globals().get("metrics", {}))\nprint(x + 1)')
          assert.equal(next.state_kept, true, JSON.stringify(next))
          if (exception === undefined) assert.equal(next.stdout.text, '42\n')
        }
      }))
  }

  for (const { title, code } of INTERRUPTED) {
    test(`an interrupt ends ${title}, and keeps the variables`, () =>
      withWorker(async worker => {
        const parts = code.split('NEXT\n')
        await run(worker, `x = 42\n${parts.length > 1 ? parts[0] : ''}`)
        const outcome = await run(worker, parts.at(-1) ?? '', 300)
        assert.equal(outcome.reason, 'timeout', JSON.stringify(outcome))
        assert.equal(outcome.state_kept, true, JSON.stringify(outcome))
        assert.equal((await run(worker, 'print(x)')).stdout.text, '42\n')
      }))
  }

  test('a signal that arrives between two steps is delivered in the next one', () =>
    withWorker(async worker => {
      await run(worker, 'import signal, os\ngot = []\nsignal.signal(signal.SIGUSR1, lambda n, f: got.append(n))')
      await run(
        worker,
        'import threading\nt = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))\nt.start()',
      )
      await run(worker, 't.join()')
      const outcome = await run(worker, 'print(len(got), signal.getsignal(signal.SIGUSR1).__name__)')
      assert.equal(outcome.stdout.text, '1 <lambda>\n')
    }))

  test('a handler that raises leaves a call whole, and the next call works', () =>
    withWorker(async worker => {
      for (const delay of [0.002, 0.01, 0.03]) {
        const outcome = await run(
          worker,
          `import signal
def h(*a): raise TimeoutError("mine")
signal.signal(signal.SIGALRM, h)
signal.setitimer(signal.ITIMER_REAL, ${delay})
try:
  while True: llm_query("p" * 4_000_000)
except TimeoutError as e: print("caught", e)
print(llm_query("abc"))`,
        )
        assert.equal(outcome.stdout.text, 'caught mine\nreply to 3\n', JSON.stringify(outcome))
      }
    }))

  test('an answer, a FINAL and a looked-up value are cut by the bytes they take in a frame', () =>
    withWorker(async worker => {
      const code = 'big = "\\U0001F600" * 6_000_000\nanswer["content"] = big\nanswer["ready"] = True\nFINAL(big);'
      const outcome = await run(worker, `${code}\nx = 42`)
      assert.equal(outcome.reason, 'ok', JSON.stringify({ ...outcome, final: null, answer: null }).slice(0, 500))
      const sizes = [outcome.final?.length ?? 0, outcome.answer?.content.length ?? 0]
      const { value } = await worker.lookup(['big'])
      for (const size of [...sizes, value?.length ?? 0]) assert.ok(size > 1_000_000 && size < 12_000_000, String(size))
      assert.match(outcome.stderr.text, /the answer has 6000000 characters and was cut to \d+/)
      assert.equal((await run(worker, 'print(x)')).stdout.text, '42\n')
    }))

  test('the longest answer fits a frame beside the longest names', () =>
    withWorker(async worker => {
      const code = `for i in range(10_000): globals()["\\U0001F600" * 95 + str(i)] = i
answer["content"] = "\\u00e9" * 2**23`
      const outcome = await run(worker, code)
      assert.equal(outcome.reason, 'ok', outcome.exception ?? '')
      assert.equal(outcome.answer?.content.length, 2 ** 23)
    }))

  test('a traceback shows no file of the worker', () =>
    withWorker(async worker => {
      const outcome = await run(worker, 'llm_query("a", model={1, 2})')
      assert.match(outcome.exception ?? '', /^TypeError[\s\S]*<cell 1>", line 1/)
      assert.doesNotMatch(outcome.exception ?? '', /worker|calls\.py|channel\.py/)
    }))
})
