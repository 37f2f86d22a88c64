/** From the schemas that check messages to the JSON Schemas that describe them. */

import { z } from 'zod'

export type JsonSchema = Record<string, unknown>

/** JSON Schema (2020-12) of a zod schema; kinds JSON Schema can't express become "anything". */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const generated = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // zod leaves the default out where a value is coerced; it is as valid on the wire as any other.
      const { def } = zodSchema._zod
      if (def.type === 'default' && jsonSchema.default === undefined) jsonSchema.default = def.defaultValue
    },
  })
  return { ...generated }
}
