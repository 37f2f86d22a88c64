/** What is answered where no route matches: 404, 405 with `Allow`, or a redirect without the last slash. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendJson } from './http-fault.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The path serves WebSockets only. */
    isUpgradeOnly?: boolean
  }
}

/**
 * Remember every route and answer for what is not one.
 *
 * Must be called before routes are registered.
 */
export function installNotFound(app: FastifyInstance): void {
  const known = new Map<string, { pattern: RegExp; methods: Set<string> }>()

  app.addHook('onRoute', route => {
    // A path that only upgrades doesn't exist for plain HTTP.
    if (route.config?.isUpgradeOnly === true) return
    const entry = known.get(route.url) ?? { pattern: toPattern(route.url), methods: new Set<string>() }
    for (const method of [route.method].flat()) entry.methods.add(method)
    known.set(route.url, entry)
  })

  const methodsOf = (path: string): string[] => {
    const exact = known.get(path)
    if (exact !== undefined) return [...exact.methods]
    for (const { pattern, methods } of known.values()) if (pattern.test(path)) return [...methods]
    return []
  }

  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const [path = '/', query] = request.url.split('?', 2)
    const allowed = methodsOf(path)
    if (allowed.length > 0) {
      return sendJson(reply.header('allow', allowed.join(', ')), { detail: 'Method Not Allowed' }, 405)
    }
    const bare = path.slice(0, -1)
    // Fixed paths only: a parameter could hold text that a browser reads as another host.
    if (path.endsWith('/') && known.has(bare)) {
      const location = bare + (query === undefined ? '' : `?${query}`)
      return reply.code(307).header('location', location).send()
    }
    return sendJson(reply, { detail: 'Not Found' }, 404)
  })
}

/** `/episodes/:id` → one segment where a parameter stands. */
function toPattern(url: string): RegExp {
  const source = url
    .split('/')
    .map(segment => (segment.startsWith(':') ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('/')
  return new RegExp(`^${source}$`)
}
