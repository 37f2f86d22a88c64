/** The table in docs/configuration.md, made from the schema that reads the environment. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { ConfigSchema } from '../../src/config.ts'
import { repositoryRoot } from '../../src/setup/paths.ts'
import { read } from './tree.ts'

const PAGE = 'docs/configuration.md'
const BEGIN = '<!-- table: made by `npm run fix` from src/config.ts -->'
const END = '<!-- end of the table -->'

/** What the page prints about a variable. */
const Facts = z.object({
  default: z.union([z.string(), z.number(), z.boolean()]).optional(),
  description: z.string('every variable needs a .describe()'),
  type: z.string().optional(),
  format: z.string().optional(),
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
})
type Facts = z.infer<typeof Facts>

/** The whole table, between its marks. */
export function configurationTable(): string {
  const rows = Object.entries(ConfigSchema.shape).map(([name, schema]) => {
    const facts = Facts.parse(z.toJSONSchema(schema, { io: 'output', unrepresentable: 'any' }))
    return `| \`${name}\` | ${describeDefault(facts)} | ${describeValues(facts)} | ${facts.description} |`
  })
  return [BEGIN, '', '| variable | default | values | meaning |', '| --- | --- | --- | --- |', ...rows, '', END].join(
    '\n',
  )
}

/** The table as the page has it; undefined without its marks. */
export function tableOnPage(): string | undefined {
  const page = read(PAGE)
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  return begin < 0 || end < begin ? undefined : page.slice(begin, end + END.length)
}

/** Put the present table on the page. */
export function writeConfigurationPage(): void {
  const old = tableOnPage()
  if (old === undefined) throw new Error(`${PAGE} has lost the marks around its table`)
  writeFileSync(
    join(repositoryRoot, PAGE),
    read(PAGE).replace(old, () => configurationTable()),
  )
}

function describeDefault({ default: value }: Facts): string {
  if (value === undefined) return 'unset'
  return value === '' ? 'empty' : `\`${value}\``
}

function describeValues({ default: value, type, format, enum: words, minimum, maximum }: Facts): string {
  if (words !== undefined) return words.map(word => `\`${word}\``).join(', ')
  if (typeof value === 'boolean') return '`true`, `false`, `1`, `0`, `yes`, `no`, `on`, `off`'
  if (type === 'integer' || type === 'number') {
    return `${type === 'integer' ? 'whole number' : 'number'}, ${minimum} to ${maximum}`
  }
  return format === 'uri' ? 'URL' : 'text'
}
