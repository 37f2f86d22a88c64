import assert from 'node:assert/strict'
import test from 'node:test'
import { asCpuBuild, cudaPackages } from '../../src/setup/torch.ts'

const planOf = (...names: string[]) => ({ version: '1', install: names.map(name => ({ metadata: { name } })) })

test('asCpuBuild() pins the local version of the CPU wheels', () => {
  assert.equal(asCpuBuild('torch==2.13.0'), 'torch==2.13.0+cpu')
  assert.equal(asCpuBuild('torch==2.13.0; python_version < "3.15"'), 'torch==2.13.0+cpu; python_version < "3.15"')
  assert.equal(asCpuBuild('torch==2.13.0+cu130'), 'torch==2.13.0+cu130')
})

test('cudaPackages() finds what only a CUDA build of torch brings', () => {
  const names = ['torch', 'Nvidia-cublas', 'nvidia-nccl-cu13', 'cuda-toolkit', 'triton', 'numpy']
  assert.deepEqual(cudaPackages(planOf(...names)), ['nvidia-cublas', 'nvidia-nccl-cu13', 'cuda-toolkit', 'triton'])
})

test('cudaPackages() finds nothing in the plan of a CPU build', () => {
  assert.deepEqual(cudaPackages(planOf('torch', 'sympy', 'networkx', 'filelock', 'numpy')), [])
})

test('cudaPackages() throws at a report that is no plan', () => {
  assert.throws(() => cudaPackages({ install: 'none' }))
})
