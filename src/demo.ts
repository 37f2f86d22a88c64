/** `npm run demo`: one whole episode over HTTP, told so that a newcomer sees what happens. */

import { styleText } from 'node:util'
import { z } from 'zod'
import type { Config } from './config.ts'
import { startServer } from './server.ts'

const CONTEXT = `In 1843 Ada Lovelace published notes on the Analytical Engine.
Note G holds a procedure for Bernoulli numbers, often called the first program.
The Engine itself was never built; Charles Babbage died in 1871.`

const QUESTION = 'How many years lie between the first and the last year in the text?'

/** What a model would write, step by step: look, try, recover from a mistake, answer. */
const STEPS = [
  ['look at the text, which is a variable and not part of the prompt', 'print(context[:62])\nlen(context)'],
  [
    'collect the years; variables stay for later steps',
    'import re\nyears = sorted(map(int, re.findall(r"\\d{4}", context)))\nyears',
  ],
  ['a mistake costs a step, not the episode', 'years[5] - years[0]'],
  ['an endless loop is cut off, and the variables are kept', 'while True:\n    pass'],
  ['end the episode: the answer travels on a private channel', 'FINAL(years[-1] - years[0])'],
] as const

const Reply = z.object({
  observation: z.object({
    result: z.object({ stdout: z.string(), stderr: z.string(), success: z.boolean() }),
  }),
  reward: z.number().nullable(),
  done: z.boolean(),
  metadata: z.object({ episode_id: z.string() }).loose(),
})

/**
 * Serve on a free port, play one scripted episode against it like any client would, and stop.
 *
 * @throws {ServiceError} As `startServer`.
 */
export async function runDemo(config: Config): Promise<void> {
  const startedAt = performance.now()
  // Importing torch takes seconds and this episode needs none.
  const server = await startServer({ ...config, HOST: '127.0.0.1', PORT: 0, WARM_SPARES: 1, FORKYARD_TORCH: 'none' })
  try {
    say(
      styleText('bold', `Forkyard serves at ${server.url} after ${since(startedAt)}; now a client plays one episode.`),
    )
    say(`\nThe text has ${CONTEXT.length} characters. The question: ${QUESTION}\n`)
    const opened = await post(server.url, 'reset', { context: CONTEXT, task_prompt: QUESTION, expected_answer: 28 })
    const { episode_id } = opened.metadata
    let rewards = 0
    for (const [intention, code] of STEPS) {
      const steppedAt = performance.now()
      const reply = await post(server.url, 'step', { episode_id, action: { code }, timeout_s: 0.5 })
      rewards += reply.reward ?? 0
      tell(intention, code, reply, since(steppedAt))
      if (reply.done) break
    }
    say(`Rewards sum to ${rewards.toFixed(2)}: 1 for the right answer, less 0.05 for each of the two failed steps.`)
    say(`Next: ${styleText('bold', 'npm start')} serves on port 8000; the README shows the clients.`)
  } finally {
    await server.close()
  }
}

async function post(url: string, verb: string, body: unknown): Promise<z.infer<typeof Reply>> {
  const response = await fetch(`${url}/repl/${verb}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`POST /repl/${verb} answered ${response.status}: ${await response.text()}`)
  return Reply.parse(await response.json())
}

function tell(
  intention: string,
  code: string,
  { observation, reward, done }: z.infer<typeof Reply>,
  took: string,
): void {
  const { stdout, stderr, success } = observation.result
  say(styleText('dim', `# ${intention}`))
  say(styleText('cyan', indent(code, '>>> ')))
  if (stdout !== '') say(indent(stdout.trimEnd(), '    '))
  if (stderr !== '') say(styleText('yellow', indent(stderr.trimEnd(), '    ')))
  const ending = done ? ', done' : ''
  say(styleText(success ? 'green' : 'red', `    reward ${reward ?? 'none'}${ending}, ${took}`))
  say('')
}

function indent(text: string, mark: string): string {
  return text.replaceAll(/^/gm, mark)
}

function since(start: number): string {
  const ms = performance.now() - start
  return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(1)} s`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
