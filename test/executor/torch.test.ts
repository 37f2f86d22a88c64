import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { EpisodeWorker } from '../../src/executor/executor.ts'
import { LEVELS, openExecutor, run, type TestExecutor } from './open-executor.ts'

const TRAIN = `
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(256, 8); y = x.sum(1, keepdim=True)
losses = []
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0] / 2)
`

const LOADER = `
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(64.0))
print(sum(batch[0].sum().item() for batch in DataLoader(data, batch_size=8, num_workers=2)))
`

for (const level of LEVELS) {
  describe(`torch at level ${level}`, { concurrency: 1 }, () => {
    let service: TestExecutor
    let worker: EpisodeWorker
    before(async () => {
      service = await openExecutor({ SANDBOX_LEVEL: level, FORKYARD_TORCH: 'cpu' })
      worker = await service.open()
    })
    after(() => service.executor.close())

    test('a model trains, forward and backward, in a forked worker', async () => {
      const outcome = await run(worker, TRAIN, 30_000)
      assert.equal(outcome.stdout.text, 'True\n', outcome.stderr.text)
    })

    test('DataLoader works with worker processes', async () => {
      const outcome = await run(worker, LOADER, 30_000)
      assert.equal(outcome.stdout.text, '2016.0\n', outcome.stderr.text)
    })

    test('a tensor changed in place is among the changed names', async () => {
      await run(worker, 't = torch.zeros(3)\nu = torch.zeros(3)')
      const { locals } = await run(worker, 't.add_(1)\nu.sum()')
      assert.deepEqual(Object.keys(locals), ['t'])
      assert.equal(locals.t, 'tensor([1., 1., 1.])')
    })

    test('the same seed gives the same tensors in another episode', async () => {
      const draws = []
      for (const seed of [5, 5, 6]) {
        const other = await service.open({ seed })
        draws.push(
          (await run(other, 'import torch, numpy\nprint(torch.rand(2).tolist(), numpy.random.rand())')).stdout.text,
        )
        other.close()
      }
      assert.equal(draws[0], draws[1])
      assert.notEqual(draws[0], draws[2])
    })

    test('a matrix product with more threads does not hang', async () => {
      const outcome = await run(
        worker,
        'torch.set_num_threads(2)\nprint((torch.ones(600, 600) @ torch.ones(600, 600))[0, 0].item())',
      )
      assert.equal(outcome.stdout.text, '600.0\n', outcome.stderr.text)
    })
  })
}
