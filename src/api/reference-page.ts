/** The OpenAPI document as one plain page: no script, nothing loaded. */

import type { JsonSchema } from '../environment/json-schema.ts'
import { isJsonObject } from './json.ts'

const STYLE = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: #f4f4f4; color: #222; padding: .75rem; overflow: auto; border-radius: .25rem; white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; }
h2 { border-top: 1px solid #ccc; padding-top: 1.5rem; }
.verb { text-transform: uppercase; font-weight: 700; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #ddd; } pre { background: #24272d; color: #ddd; } }
`

/** Render a document of `createOpenApi`. */
export function renderReference(title: string, document: JsonSchema): string {
  const info = objectIn(document, 'info')
  const operations = Object.entries(objectIn(document, 'paths')).flatMap(([path, item]) =>
    isJsonObject(item) ? Object.entries(item).map(([verb, operation]) => renderOperation(verb, path, operation)) : [],
  )
  const schemas = Object.entries(objectIn(objectIn(document, 'components'), 'schemas')).map(
    ([name, schema]) => `<h3 id="${escapeHtml(name)}">${escapeHtml(name)}</h3>${renderJson(schema)}`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}: reference</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(String(info.title))}</h1>
<p>API version ${escapeHtml(String(info.version))}. Also as <a href="openapi.json">OpenAPI</a> and as
<a href="docs">pages to try it out</a>.</p>
<pre>${escapeHtml(String(info.description))}</pre>
${operations.join('\n')}
<h2>Schemas</h2>
${schemas.join('\n')}
</body>
</html>
`
}

function renderOperation(verb: string, path: string, operation: unknown): string {
  if (!isJsonObject(operation)) return ''
  const { summary, description, ...rest } = operation
  return `<h2><span class="verb">${escapeHtml(verb)}</span> <code>${escapeHtml(path)}</code></h2>
<p>${escapeHtml(String(summary))}${description === undefined ? '' : `. ${escapeHtml(String(description))}`}</p>
${renderJson(rest)}`
}

const renderJson = (value: unknown) => `<pre><code>${escapeHtml(JSON.stringify(value, null, 2))}</code></pre>`

function objectIn(holder: Record<string, unknown>, key: string): Record<string, unknown> {
  const value = holder[key]
  return isJsonObject(value) ? value : {}
}

/** Make text safe inside an element or a quoted attribute. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, char => entities[char] ?? char)
}
