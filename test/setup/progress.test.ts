import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { tellDetails } from '../../src/setup/pip.ts'
import { createProgress, type Progress } from '../../src/setup/progress.ts'

const ERASE = '\r\u001B[2K'

/** What two stages with a detail between them write. */
function written(screen: { isTTY?: boolean; columns?: number }): string {
  const stream = Object.assign(new PassThrough(), screen)
  const progress = createProgress(stream)
  progress.stage('one')
  progress.detail('half of something long')
  progress.stage('two')
  progress.close()
  return String(stream.read())
}

test('createProgress() writes stages only where the output is no terminal', () => {
  assert.equal(written({}), 'setup: one\nsetup: two\n')
})

test('createProgress() shows details in one line of a terminal, cut to its width', () => {
  assert.equal(written({ isTTY: true, columns: 12 }), `setup: one\n${ERASE}  half of s${ERASE}setup: two\n`)
})

test("tellDetails() turns pip's raw progress into a percentage of the file", () => {
  const details: string[] = []
  const progress: Progress = {
    stage: () => assert.fail('no stage'),
    detail: text => details.push(text),
    close: () => undefined,
  }
  const tell = tellDetails(progress)
  const lines = [
    'Collecting torch==2.13.0',
    '  Downloading https://example.org/whl/torch-2.13.0-cp311.whl (190 MB)',
    'Progress 0 of 200',
    'Progress 50 of 200',
    'Progress 0 of 0',
    'Requirement already satisfied: numpy',
    'Installing collected packages: torch',
  ]
  for (const line of lines) tell(line)
  assert.deepEqual(details, [
    'Collecting torch==2.13.0',
    '0 % of torch-2.13.0-cp311.whl',
    '25 % of torch-2.13.0-cp311.whl',
    'Installing collected packages: torch',
  ])
})
