/** The page of the web interface: reset, send an action, watch the shared episode. Loads nothing from elsewhere. */

import type { EnvironmentMetadata } from '../environment/environment.ts'
import type { JsonSchema } from '../environment/json-schema.ts'
import { isJsonObject, toJson } from './json.ts'
import { escapeHtml } from './reference-page.ts'

const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
textarea, pre { width: 100%; box-sizing: border-box; font: 14px/1.4 ui-monospace, monospace; }
pre { padding: .75rem; border: 1px solid #8884; border-radius: .25rem; overflow: auto; max-height: 30rem; white-space: pre-wrap; }
button { font: inherit; padding: .3rem 1rem; }
#fault { color: #c22; }
`

// Visitors are shown agent output, so everything is set as text and never as markup.
const SCRIPT = `
const byId = id => document.getElementById(id)
async function post(path, text) {
  byId('fault').textContent = ''
  const reply = await fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text })
  if (!reply.ok) byId('fault').textContent = reply.status + ' ' + await reply.text()
}
byId('reset').onclick = () => post('reset', byId('request').value)
byId('step').onclick = () => post('step', '{"action":' + byId('action').value + '}')
function watch() {
  const socket = new WebSocket(new URL('../ws/ui', location.href).href.replace(/^http/, 'ws'))
  socket.onmessage = event => {
    const { action_logs, current_observation, ...rest } = JSON.parse(event.data).episode_state
    byId('episode').textContent = JSON.stringify(rest, null, 2)
    byId('observation').textContent = JSON.stringify(current_observation, null, 2)
    byId('log').textContent = action_logs.map(entry => JSON.stringify(entry)).reverse().join('\\n\\n')
  }
  socket.onclose = () => setTimeout(watch, 2000)
}
watch()
`

/** Render the page of one environment. @param action JSON Schema of its actions, for a first example. */
export function renderWebPage({ name, description }: EnvironmentMetadata, action: JsonSchema): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escapeHtml(name)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(name)}</h1>
<p>${escapeHtml(description)}</p>
<p>All visitors of this page share one episode. <a href="../docs">API</a></p>
<h2>Reset</h2>
<textarea id="request" rows="3" spellcheck="false">{}</textarea>
<button id="reset">Reset</button>
<h2>Step</h2>
<textarea id="action" rows="8" spellcheck="false">${escapeHtml(exampleOf(action))}</textarea>
<button id="step">Step</button>
<p id="fault" role="alert"></p>
<h2>Episode</h2>
<pre id="episode"></pre>
<h2>Observation</h2>
<pre id="observation"></pre>
<h2>Actions, latest first</h2>
<pre id="log"></pre>
<script>${SCRIPT}</script>
</body>
</html>
`
}

/** The defaults of an action, as JSON to start from. */
function exampleOf(action: JsonSchema): string {
  const properties = isJsonObject(action.properties) ? action.properties : {}
  const example = Object.entries(properties).flatMap(([key, schema]) =>
    isJsonObject(schema) && key !== 'metadata' && 'default' in schema ? [[key, schema.default] as const] : [],
  )
  return JSON.stringify(JSON.parse(toJson(Object.fromEntries(example))), null, 2)
}
