/** Finds what a TypeScript file imports. */

import { dirname, join } from 'node:path'

/** `import … from`, `export … from`, `import '…'` and `import('…')`, also over several lines. */
const FORMS = [
  /^[ \t]*(?:import|export)\s[^'"`;=]*?\bfrom\s*['"]([^'"]+)['"]/gm,
  /^[ \t]*import\s*['"]([^'"]+)['"]/gm,
  /\bimport\(\s*['"]([^'"]+)['"]\s*\)/g,
]

/** Module names in a text, as written. */
export function importsOf(text: string): string[] {
  return FORMS.flatMap(form => [...text.matchAll(form)].map(match => match[1] ?? ''))
}

/** Files of the repository that a file imports, relative to the repository. */
export function localImportsOf(path: string, text: string): string[] {
  return importsOf(text)
    .filter(name => name.startsWith('.'))
    .map(name => join(dirname(path), name))
}

/** The first cycle found in an import graph, as the path around it; undefined when there is none. */
export function findCycle(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const finished = new Set<string>()
  const visit = (path: string, trail: string[]): string[] | undefined => {
    const seenAt = trail.indexOf(path)
    if (seenAt >= 0) return [...trail.slice(seenAt), path]
    if (finished.has(path)) return undefined
    for (const next of graph.get(path) ?? []) {
      const cycle = visit(next, [...trail, path])
      if (cycle !== undefined) return cycle
    }
    finished.add(path)
    return undefined
  }
  for (const path of graph.keys()) {
    const cycle = visit(path, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}
