import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { CellOutcome, EpisodeWorker } from '../../src/executor/executor.ts'
import { LEVELS, openExecutor, run, type TestExecutor } from './open-executor.ts'

const MIB = 1024 * 1024
const base64 = (text: string): string => Buffer.from(text).toString('base64')

const MEASURE = `
import numpy
from inner.sums import total

def measure(files):
    return {"total": float(total(numpy.ones(3))), "names": sorted(files), "bad": float("nan")}
`

const TRAIN = `
import json, os, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def main():
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, num_workers=2)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        for rows, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(rows), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    print(losses[-1] < losses[0])
    with open("result.json", "w") as file:
        json.dump(losses, file)
    os.symlink("/etc/hostname", "link")

if __name__ == "__main__":
    main()
`

for (const level of LEVELS) {
  describe(`instruments at level ${level}`, { concurrency: 1 }, () => {
    let service: TestExecutor
    let worker: EpisodeWorker
    const measure = (name: string, args: Record<string, unknown>, code = '', limit_ms = 30_000): Promise<CellOutcome> =>
      worker.run({ code, limit_ms, instrument: { name, arguments: args } })

    before(async () => {
      service = await openExecutor({ SANDBOX_LEVEL: level, FORKYARD_TORCH: 'cpu', STEP_GRACE_S: '5' })
      const files = {
        'asked.py': base64(MEASURE),
        'inner/__init__.py': '',
        'inner/sums.py': base64('def total(values):\n    return values.sum()\n'),
      }
      worker = await service.open({ endings: false, files })
    })
    after(() => service.executor.close())

    test('call reports what a function of the work folder returns', async () => {
      const arguments_ = { module: 'asked', function: 'measure', arguments: { files: { b: '', a: '' } } }
      const outcome = await measure('call', arguments_)
      assert.deepEqual(outcome.report, { total: 3, names: ['a', 'b'], bad: null }, outcome.stderr.text)
      assert.equal(outcome.exception, null)
    })

    test('run_script trains with loader processes, and collect_files takes what it left', async () => {
      const outcome = await measure('run_script', { code: TRAIN, cpu_s: 20 })
      assert.equal(outcome.stdout.text, 'True\n', outcome.stderr.text)
      assert.equal(outcome.report?.exit_code, 0)
      assert.equal(outcome.report?.timed_out, false)
      const collected = await measure('collect_files', {
        names: ['result.json', 'link', 'gone'],
        max_file_bytes: MIB,
        max_total_bytes: MIB,
      })
      const { files, refused } = collected.report as { files: Record<string, string>; refused: Record<string, string> }
      assert.deepEqual(Object.keys(files), ['result.json'])
      assert.equal(JSON.parse(Buffer.from(files['result.json'] ?? '', 'base64').toString()).length, 20)
      assert.deepEqual(refused, { link: 'it is a symbolic link', gone: 'it is missing' })
    })

    test('run_script leaves the variables and modules of the worker alone', async () => {
      await run(worker, 'kept = 1')
      await measure('run_script', { code: 'import torch\nkept = 2\ntorch.Tensor.backward = None', cpu_s: 5 })
      const outcome = await run(worker, 'print(kept, torch.Tensor.backward is None)')
      assert.equal(outcome.stdout.text, '', 'torch is imported by no cell of this worker')
      assert.match(outcome.exception ?? '', /^NameError: name 'torch'/)
      assert.equal(
        (await run(worker, 'import torch\nprint(kept, torch.Tensor.backward is None)')).stdout.text,
        '1 False\n',
      )
    })

    test('run_script shows the traceback of a script without frames of the worker', async () => {
      const outcome = await measure('run_script', { code: 'def f():\n    1 / 0\nf()', cpu_s: 5 })
      assert.equal(outcome.report?.exit_code, 1)
      assert.equal(outcome.exception, null)
      assert.match(outcome.stderr.text, /^Traceback.*\n {2}File "train.py", line 3, in <module>\n {4}f\(\)\n/)
      assert.doesNotMatch(outcome.stderr.text, /instruments|worker/)
    })

    test('run_script reports the growth of the memory of the script', async () => {
      for (const [code, expected] of [
        ['pass', 0],
        [`x = bytearray(${200 * MIB})\ndel x`, 200 * MIB],
      ] as const) {
        const { report } = await measure('run_script', { code, cpu_s: 10 })
        const growth = Number(report?.peak_growth_bytes)
        assert.ok(Math.abs(growth - expected) < 20 * MIB, `${code}: ${growth / MIB} MiB`)
      }
    })

    test('run_script ends a script at the deadline, with its report, and the worker lives on', async () => {
      await run(worker, 'kept = 3')
      const outcome = await measure(
        'run_script',
        { code: 'print("begun", flush=True)\nwhile True: pass', cpu_s: 60 },
        '',
        1000,
      )
      assert.equal(outcome.reason, 'timeout')
      assert.equal(outcome.state_kept, true)
      assert.equal(outcome.stdout.text, 'begun\n')
      assert.equal(outcome.report?.timed_out, true)
      assert.equal(outcome.report?.signal, 9)
      assert.equal((await run(worker, 'print(kept)')).stdout.text, '3\n')
    })

    test('inspect_tensor sees what the code of its cell made, and what earlier ones made', async () => {
      await run(worker, 'import torch\nlayer = torch.nn.Linear(3, 2)')
      const outcome = await measure('inspect_tensor', { expression: 'x' }, 'x = layer(torch.ones(4, 3))')
      assert.equal(outcome.exception, null)
      assert.deepEqual(outcome.report?.shape, [4, 2])
      assert.equal(outcome.report?.requires_grad, true)
      assert.equal((await measure('inspect_tensor', { expression: 'layer' })).report?.parameter_count, 8)
    })

    test('inspect_tensor of a nested and of a quantized tensor needs nothing that the sandbox hides', async () => {
      const code = `
import warnings; warnings.simplefilter("ignore")
nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
quantized = torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8)`
      for (const [expression, mean] of [
        ['nested', 1],
        ['quantized', 1],
      ] as const) {
        const { report, stderr } = await measure('inspect_tensor', { expression }, code)
        assert.equal(report?.mean_val, mean, stderr.text)
        assert.match(String(report?.repr), /tensor\(/)
      }
    })

    test('variable_state keeps the results before a deadline', async () => {
      const expressions = ['kept', '1 / 0', 'layer.weight.shape', '[0 for _ in iter(int, 1)]', 'kept']
      const outcome = await measure('variable_state', { expressions }, 'kept = 4', 500)
      assert.equal(outcome.reason, 'timeout')
      assert.equal(outcome.state_kept, true)
      const results = outcome.report?.results as Record<string, { value: unknown; error: string | null }>
      assert.deepEqual(Object.keys(results), ['kept', '1 / 0', 'layer.weight.shape'])
      assert.equal(results.kept?.value, 4)
      assert.match(results['1 / 0']?.error ?? '', /ZeroDivisionError/)
      assert.equal(results['layer.weight.shape']?.value, 'torch.Size([2, 3])')
    })

    test('arguments of another type are an exception that names them', async () => {
      const outcome = await measure('run_script', { code: 3, cpu_s: 5 })
      assert.match(outcome.exception ?? '', /^TypeError: code: expected text, got int/)
    })
  })
}
