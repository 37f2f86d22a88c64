/** The Task API: which tasks an environment offers, for clients that choose them by split and index. */

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { JsonValue, TaskCatalogue } from '../environment/environment.ts'
import { laxInt, text } from '../environment/fields.ts'
import { readBodyObject } from './body.ts'
import type { EnvironmentEdge } from './environment-edge.ts'
import { HttpFault, sendJson, unprocessable } from './http-fault.ts'
import { check, errorItem } from './validation.ts'

const SplitBody = z.looseObject({ split: text() })
const TaskBody = SplitBody.extend({ index: laxInt() })
const RangeBody = SplitBody.extend({ start: laxInt().nullish(), stop: laxInt().nullish() })

/** Register the routes of all environments. */
export function registerTaskRoutes(app: FastifyInstance, edges: readonly EnvironmentEdge[]): void {
  const known = new Map(
    edges.flatMap(({ environment }) =>
      [environment.name, environment.metadata.name].map(alias => [alias.toLowerCase(), environment] as const),
    ),
  )
  const catalogueOf = (params: unknown): { name: string; catalogue: TaskCatalogue } => {
    const { env } = params as { env: string }
    const environment = known.get(env.toLowerCase())
    if (environment === undefined) throw new HttpFault(404, `Unknown environment: ${env}`)
    const { name, tasks: catalogue } = environment
    if (catalogue === undefined) throw new HttpFault(501, `Environment ${name} does not offer tasks`)
    return { name, catalogue }
  }

  app.get('/list_environments', (_request, reply) =>
    sendJson(
      reply,
      edges.map(edge => edge.environment.name),
    ),
  )
  app.get('/:env/splits', (request, reply) => sendJson(reply, catalogueOf(request.params).catalogue.splits))
  app.post('/:env/tasks', (request, reply) => {
    const { name, catalogue } = catalogueOf(request.params)
    const { split } = checked(SplitBody, readBodyObject(request))
    return sendJson(reply, { tasks: tasksOf(catalogue, split), env_name: name })
  })
  app.post('/:env/num_tasks', (request, reply) => {
    const { catalogue } = catalogueOf(request.params)
    const { split } = checked(SplitBody, readBodyObject(request))
    return sendJson(reply, { num_tasks: tasksOf(catalogue, split).length })
  })
  app.post('/:env/task', (request, reply) => {
    const { catalogue } = catalogueOf(request.params)
    const { split, index } = checked(TaskBody, readBodyObject(request))
    const tasks = tasksOf(catalogue, split)
    const task = index < 0 ? undefined : tasks[index]
    if (task === undefined) throw new HttpFault(400, `index ${index} is not in 0 to ${tasks.length - 1}`)
    return sendJson(reply, { task })
  })
  app.post('/:env/task_range', (request, reply) => {
    const { catalogue } = catalogueOf(request.params)
    const { split, start, stop } = checked(RangeBody, readBodyObject(request))
    const tasks = tasksOf(catalogue, split)
    const [from, to] = [start ?? 0, stop ?? tasks.length]
    if (from < 0 || to < from || to > tasks.length) {
      throw new HttpFault(400, `range ${from} to ${to} is not in 0 to ${tasks.length}`)
    }
    return sendJson(reply, { tasks: tasks.slice(from, to) })
  })
}

function tasksOf(catalogue: TaskCatalogue, split: string): JsonValue[] {
  const tasks = catalogue.tasks(split)
  if (tasks !== undefined) return tasks
  const names = catalogue.splits.map(({ name }) => name).join(', ')
  throw new HttpFault(400, `Unknown split: ${split}. Splits here: ${names}`)
}

function checked<Schema extends z.ZodType>(schema: Schema, body: Record<string, unknown> | null): z.output<Schema> {
  if (body === null) throw unprocessable([errorItem('missing', ['body'], 'Field required', null)])
  const result = check(schema, body, { loc: ['body'] })
  if (!result.ok) throw unprocessable(result.items)
  return result.value
}
