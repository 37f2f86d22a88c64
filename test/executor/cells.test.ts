import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker, Reason } from '../../src/executor/executor.ts'
import { LEVELS, openExecutor, run, type TestExecutor } from './open-executor.ts'

type Case = {
  title: string
  code: string
  reason: Reason
  kept?: boolean
  stdout?: RegExp
  stderr?: RegExp
  exception?: RegExp
  limitMs?: number
}

const CASES: Case[] = [
  {
    title: 'an expression is echoed as the interactive prompt does',
    code: "'a\\'b'",
    reason: 'ok',
    stdout: /^"a'b"\n$/,
  },
  { title: 'None is not echoed', code: 'None', reason: 'ok', stdout: /^$/ },
  { title: 'an assignment is not echoed', code: 'x = 5', reason: 'ok', stdout: /^$/ },
  { title: 'print keeps its separators', code: "print(1, 2, sep='-', end='!')", reason: 'ok', stdout: /^1-2!$/ },
  {
    title: 'C code and child processes are captured',
    code: "import ctypes, os\nctypes.CDLL(None).printf(b'from C\\n')\nos.system('echo child; echo err >&2')",
    reason: 'ok',
    stdout: /from C\n[\s\S]*child/,
    stderr: /err/,
  },
  {
    title: 'raw writes to descriptor 1 are plain output',
    code: 'import os, sys\nos.write(1, b\'{"type": "result", "id": 1}\\n\')\nsys.__stdout__.write("raw\\n"); sys.__stdout__.flush()\nprint("end")',
    reason: 'ok',
    stdout: /^\{"type": "result", "id": 1\}\nraw\nend\n$/,
  },
  { title: 'input() gets EOF at once', code: 'input()', reason: 'exception', exception: /^EOFError/ },
  {
    title: 'sys.exit is an exception, not an end',
    code: 'import sys; sys.exit(3)',
    reason: 'exception',
    exception: /^SystemExit: 3/,
  },
  {
    title: 'raise KeyboardInterrupt is an exception',
    code: 'raise KeyboardInterrupt',
    reason: 'exception',
    exception: /^KeyboardInterrupt/,
  },
  {
    title: 'os._exit is told as exited',
    code: "print('before', flush=True)\nimport os; os._exit(7)",
    reason: 'exited',
    kept: false,
    stdout: /^before\n$/,
    exception: /status 7/,
  },
  {
    title: 'a segfault is told as a signal',
    code: "print('before')\nimport ctypes; ctypes.string_at(0)",
    reason: 'signal',
    kept: false,
    stdout: /^before\n$/,
    exception: /SIGSEGV/,
  },
  {
    title: 'unbounded recursion is an exception',
    code: 'def f(): f()\nf()',
    reason: 'exception',
    exception: /^RecursionError/,
  },
  {
    title: 'recursion without a limit ends the process or the recursion, never the service',
    code: 'import sys\nsys.setrecursionlimit(10**9)\nclass A:\n  def __getattr__(self, n): return getattr(self, n + "x")\nA().x',
    reason: 'signal',
    kept: false,
    limitMs: 20_000,
  },
  {
    title: 'an exception whose __str__ raises is still told',
    code: 'class E(Exception):\n  def __str__(self): raise ValueError\nraise E',
    reason: 'exception',
    exception: /^E: <exception str\(\) failed>/,
  },
  {
    title: 'an exception whose __str__ exits is still told',
    code: 'class E(Exception):\n  def __str__(self): raise SystemExit\nraise E',
    reason: 'exception',
    exception: /^E:/,
  },
  {
    title: 'an integer of a million digits has no text',
    code: 'y = 10 ** 10 ** 6\ny',
    reason: 'exception',
    exception: /^ValueError: Exceeds the limit/,
  },
  {
    title: 'lone surrogates and NUL are shown',
    code: "print('\\ud800 \\x00')\n'\\udfff'",
    reason: 'ok',
    stdout: /^\\ud800 \0\n'\\udfff'\n$/,
  },
  {
    title: 'invalid UTF-8 is decoded with replacement',
    code: "import os; os.write(1, b'\\xff\\xfe ok\\n')",
    reason: 'ok',
    stdout: /^\uFFFD\uFFFD ok\n6\n$/,
  },
  {
    title: 'lone surrogates in source are an exception',
    code: "x = '\ud800'",
    reason: 'exception',
    exception: /^(UnicodeEncodeError|SyntaxError)/,
  },
  {
    title: 'NUL in source is an exception',
    code: 'x = "a\0b"',
    reason: 'exception',
    exception: /^(SyntaxError|ValueError)/,
  },
  {
    title: 'a syntax error shows its line and nothing of earlier steps',
    code: 'x = = 1',
    reason: 'exception',
    stdout: /^$/,
    exception: /^SyntaxError: invalid syntax\n[\s\S]*x = = 1/,
  },
  {
    title: 'a forked child ends where the cell ends',
    code: "import os\npid = os.fork()\nif pid == 0: print('child')\nelse:\n  os.waitpid(pid, 0); print('parent')",
    reason: 'ok',
    stdout: /^child\nparent\n$/,
  },
  {
    title: 'a sleep is interrupted and keeps its output',
    code: "print('before')\nimport time; time.sleep(30)",
    reason: 'timeout',
    stdout: /^before\n$/,
    exception: /^StepTimeout.*line 2/,
    limitMs: 300,
  },
  {
    title: 'a loop is interrupted',
    code: 'while True: pass',
    reason: 'timeout',
    exception: /^StepTimeout/,
    limitMs: 300,
  },
  {
    title: 'a lock that nobody releases is interrupted',
    code: 'import threading\nl = threading.Lock(); l.acquire(); l.acquire()',
    reason: 'timeout',
    limitMs: 300,
  },
  {
    title: 'a child process that hangs is left and the step answered',
    code: "import subprocess\nsubprocess.run(['sleep', '60'])",
    reason: 'timeout',
    limitMs: 300,
  },
  {
    title: 'a cell that swallows the interrupt is killed',
    code: "print('before')\nimport time\nwhile True:\n  try: time.sleep(60)\n  except BaseException: pass",
    reason: 'timeout',
    kept: false,
    stdout: /^before\n$/,
    exception: /could not be interrupted/,
    limitMs: 300,
  },
  {
    title: 'a C call that ignores signals is killed',
    code: "import re\nprint('before')\nre.match('(a+)+$', 'a' * 64 + 'b')",
    reason: 'timeout',
    stdout: /^before\n$/,
    limitMs: 300,
  },
  {
    title: 'blocked signals do not help',
    code: 'import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\nwhile True: pass',
    reason: 'timeout',
    kept: false,
    limitMs: 300,
  },
  {
    title: 'a stopped process is killed',
    code: 'import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)',
    reason: 'timeout',
    kept: false,
    limitMs: 300,
  },
  {
    title: 'a closed channel is the end of the worker',
    code: 'import os\nos.closerange(3, 1000)',
    reason: 'exited',
    kept: false,
  },
  {
    title: 'closed standard descriptors come back',
    code: 'import os\nos.close(0); os.close(1); os.close(2)',
    reason: 'ok',
    stderr: /put back/,
  },
  {
    title: 'a replaced sys.stdout comes back',
    code: "import sys\nsys.stdout = None\nsys.stderr = open('/dev/null', 'w')",
    reason: 'ok',
  },
  {
    title: 'overwritten built-ins come back',
    code: 'import builtins\nbuiltins.len = None\ndel builtins.print\nbuiltins.isinstance = lambda *a: 1/0',
    reason: 'ok',
    stderr: /put back.*builtins/,
  },
]

for (const level of LEVELS) {
  describe(`run() at level ${level}`, { concurrency: 1 }, () => {
    let service: TestExecutor
    let worker: EpisodeWorker
    before(async () => {
      service = await openExecutor({ SANDBOX_LEVEL: level, STEP_GRACE_S: '0.3' })
      worker = await service.open({ variables: { context: 'the context' } })
    })
    after(() => service.executor.close())

    for (const { title, code, reason, kept = true, stdout, stderr, exception, limitMs } of CASES) {
      test(`${title}, and the next step works`, async () => {
        const outcome = await run(worker, code, limitMs)
        if (title.includes('recursion without a limit')) {
          assert.ok(['signal', 'exception', 'timeout', 'memory_limit'].includes(outcome.reason), outcome.reason)
        } else if (title.includes('ignores signals')) {
          assert.equal(outcome.reason, 'timeout')
        } else {
          assert.equal(outcome.reason, reason, JSON.stringify(outcome))
          assert.equal(outcome.state_kept, kept)
        }
        if (stdout !== undefined) assert.match(outcome.stdout.text, stdout)
        if (stderr !== undefined) assert.match(outcome.stderr.text, stderr)
        if (exception !== undefined) assert.match(outcome.exception ?? '', exception)
        const next = await run(worker, 'print(len(context), "next")')
        assert.equal(next.reason, 'ok', JSON.stringify(next))
        assert.match(next.stdout.text, /11 next\n/)
      })
    }
  })
}
