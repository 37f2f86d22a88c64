import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { CellJournal, type Rerun } from '../../src/environment/ml-debug-journal.ts'
import type { CellOutcome } from '../../src/executor/executor.ts'
import { openExecutor, type TestExecutor } from '../executor/open-executor.ts'

const LIMIT_MS = 10_000
/** Ends the process whenever it runs. */
const DEADLY = 'import os\nos._exit(1)'

suite('CellJournal', () => {
  let bench: TestExecutor
  before(async () => {
    bench = await openExecutor()
  })
  after(() => bench.executor.close())

  /** A worker whose cells are written into a journal as they run, and a way to run one that isn't. */
  async function write(cells: string[], limitMs?: number) {
    const worker = await bench.open({ seed: 7 })
    const journal = new CellJournal(limitMs)
    for (const [index, code] of cells.entries()) {
      journal.add(index + 1, code, await worker.run({ code, limit_ms: LIMIT_MS }))
    }
    const runs: string[] = []
    const rerun: Rerun = (code, limit_ms) => {
      runs.push(code)
      return worker.run({ code, limit_ms })
    }
    const lose = async () => {
      assert.equal((await worker.run({ code: DEADLY, limit_ms: LIMIT_MS })).state_kept, false)
      journal.lose()
    }
    return { journal, rerun, runs, lose, shown: async (name: string) => (await worker.lookup([name])).value }
  }

  test('restore() runs the cells again in their order, those that raised too', async () => {
    const { journal, rerun, runs, lose, shown } = await write([
      'a = [1]',
      'a.append(2)\nraise KeyError',
      '',
      'a.append(3)',
    ])
    await lose()
    assert.deepEqual([journal.stale, journal.empty], [true, false])
    assert.deepEqual(await journal.restore(rerun), { missing: [] })
    assert.equal(runs.length, 3)
    assert.equal(await shown('a'), '[1, 2, 3]')
    assert.equal(journal.stale, false)
  })

  test('restore() gives the generators the numbers they gave before', async () => {
    const { journal, rerun, lose, shown } = await write(['import random\na = random.random()', 'b = random.random()'])
    const before = [await shown('a'), await shown('b')]
    await lose()
    await journal.restore(rerun)
    assert.deepEqual([await shown('a'), await shown('b')], before)
  })

  test('restore() leaves out a cell that loses the process again, and starts over with the others', async () => {
    const { journal, rerun, lose, shown } = await write(['a = 1', 'b = 2'])
    journal.add(3, DEADLY, { ...(await rerun('c = 3', LIMIT_MS)), reason: 'ok' })
    await lose()
    assert.deepEqual(await journal.restore(rerun), { missing: [3] })
    assert.deepEqual([await shown('a'), await shown('b'), await shown('c')], ['1', '2', null])
    await lose()
    assert.deepEqual(await journal.restore(rerun), { missing: [] })
  })

  test('restore() gives up a cell that ends otherwise than before, and cells without time', async () => {
    const once = 'import builtins\nif hasattr(builtins, "seen"): raise ValueError\na = 1'
    const slow = 'import time\nif slow: time.sleep(60)\nb = 2'
    const { journal, rerun, lose, shown } = await write(['slow = False', once, slow, 'c = 3'], 500)
    await lose()
    await rerun('import builtins\nbuiltins.seen = True\nclass Never:\n    pass', LIMIT_MS)
    const slowly: Rerun = (code, limitMs) => rerun(code === 'slow = False' ? 'slow = True' : code, limitMs)
    assert.deepEqual(await journal.restore(slowly), { missing: [2, 3, 4] })
    assert.equal(await shown('slow'), 'True')
  })

  test('restore() hands back the outcome when the service has no process', async () => {
    const { journal, rerun, lose } = await write(['a = 1'])
    await lose()
    const outcome: CellOutcome = { ...(await rerun('', LIMIT_MS)), reason: 'infra_error', state_kept: false }
    assert.deepEqual(await journal.restore(async () => outcome), outcome)
    assert.equal(journal.stale, true)
  })

  test('add() can not run again what a limit ended or what lost the process, nor text beyond a MiB, and says so', async () => {
    const { journal, rerun, lose, shown } = await write(['a = 1'])
    const outcome = await rerun('', LIMIT_MS)
    journal.add(2, 'b = 1', { ...outcome, reason: 'timeout' })
    for (const turn of [3, 4]) journal.add(turn, `c${turn} = 1${' '.repeat(600 * 1024)}`, outcome)
    journal.add(5, 'd = 1', { ...outcome, state_kept: false })
    await lose()
    assert.deepEqual(await journal.restore(rerun), { missing: [2, 4, 5] })
    assert.deepEqual([await shown('a'), await shown('c3'), await shown('d')], ['1', '1', null])
  })

  test('lose() without cells leaves nothing to restore', () => {
    const journal = new CellJournal()
    journal.lose()
    assert.equal(journal.stale, false)
  })
})
