/** `/openapi.json`, and pages that show it without loading anything from elsewhere. */

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { EnvironmentEdge } from './environment-edge.ts'
import { sendJsonText } from './http-fault.ts'
import { toJson } from './json.ts'
import { createOpenApi } from './openapi.ts'
import { escapeHtml, renderReference } from './reference-page.ts'

/** Files of swagger-ui that the page needs, with their types. */
const ASSETS: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
}
const HTML = 'text/html; charset=utf-8'
const ONE_DAY = 'public, max-age=86400'

/** Register the document and its pages for one environment at one prefix. */
export function registerDocsRoutes(app: FastifyInstance, edge: EnvironmentEdge, prefix: string): void {
  const document = createOpenApi(edge, prefix)
  const text = toJson(document)
  const title = edge.environment.metadata.name
  const docs = renderDocs(title)
  const reference = renderReference(title, document)

  app.get('/openapi.json', (_request, reply) => sendJsonText(reply, text))
  app.get('/docs', (_request, reply) => reply.header('content-type', HTML).send(docs))
  app.get('/redoc', (_request, reply) => reply.header('content-type', HTML).send(reference))
  for (const [name, type] of Object.entries(ASSETS)) {
    app.get(`/docs/${name}`, async (_request, reply) =>
      reply
        .header('content-type', type)
        .header('cache-control', ONE_DAY)
        .send(await readAsset(name)),
    )
  }
}

const assets = new Map<string, Promise<Buffer>>()

/** Read once: the same bytes serve every environment. */
function readAsset(name: string): Promise<Buffer> {
  const known = assets.get(name)
  if (known !== undefined) return known
  const folder = join(dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json')), 'static')
  const bytes = readFile(join(folder, name))
  assets.set(name, bytes)
  return bytes
}

// Addresses are relative, so that the page works at every prefix and behind a proxy that adds a path of its own.
const renderDocs = (title: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(title)}: API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" href="docs/favicon-32x32.png">
</head>
<body>
<div id="api"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script>
  SwaggerUIBundle({ url: 'openapi.json', dom_id: '#api', deepLinking: true, validatorUrl: null })
</script>
</body>
</html>
`
