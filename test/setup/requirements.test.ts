import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { withDir } from 'tmp-promise'
import { isTorch, namesOf, readRequirements } from '../../src/setup/requirements.ts'

const requirementsIn = (text: string): Promise<string[]> =>
  withDir(
    async ({ path }) => {
      const file = join(path, 'requirements.txt')
      await writeFile(file, text)
      return await readRequirements(file)
    },
    { unsafeCleanup: true },
  )

test('readRequirements() leaves comments and blank lines out', async () => {
  const text = '# header\n\ntorch==2.13.0   # a comment\nnumpy==2.2.6; python_version < "3.11"\r\n'
  assert.deepEqual(await requirementsIn(text), ['torch==2.13.0', 'numpy==2.2.6; python_version < "3.11"'])
})

test('readRequirements() refuses a line that is an option of pip', async () => {
  await assert.rejects(requirementsIn('--index-url https://example.org\n'), { code: 'invalid_config' })
})

test('isTorch() tells torch from packages that begin like it', () => {
  const names = ['torch==2.13.0', 'torch', 'torch>=2', 'torchvision==1', 'torch-geometric==2', 'torch.x==1']
  assert.deepEqual(names.filter(isTorch), ['torch==2.13.0', 'torch', 'torch>=2'])
})

test('namesOf() says each package once', () => {
  assert.equal(namesOf(['numpy==1; python_version < "3.11"', 'numpy==2', 'a-b[c]==1']), 'numpy, a-b')
})
