/** Who may import whom below `src/`. */

/** Files that put the program together, and so know every room. */
const ASSEMBLY = ['app.ts', 'server.ts', 'start-executor.ts', 'demo.ts']

/** Room to the rooms it may import, besides itself. Files at the top of `src/` are rooms of their own. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'errors.ts': [],
  'config.ts': ['errors.ts'],
  'cli.ts': ['cli', 'errors.ts'],
  cli: [...ASSEMBLY, 'inference', 'setup', 'config.ts', 'errors.ts'],
  api: ['environment', 'errors.ts'],
  inference: ['environment', 'errors.ts'],
  environment: ['reward', 'executor', 'errors.ts'],
  reward: ['errors.ts'],
  executor: ['launcher', 'errors.ts'],
  launcher: ['errors.ts'],
  setup: ['errors.ts'],
}

/** A single file that may do what its room may not: the line where environments are registered takes their settings. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  'src/environment/registry.ts': ['config.ts'],
}

/** The room of a path below `src/`: its folder, or the file itself at the top. */
export const roomOf = (path: string): string => path.split('/')[1] ?? ''

/** Why a file may not import another; undefined when it may. */
export function objection(from: string, to: string): string | undefined {
  const [room, other] = [roomOf(from), roomOf(to)]
  if (!to.startsWith('src/')) return `${from} imports ${to}, which is outside src/`
  if (room === other || EXCEPTIONS[from]?.includes(other)) return undefined
  if (ASSEMBLY.includes(room))
    return other === 'cli' || other === 'cli.ts' ? `${from} imports the command line` : undefined
  const allowed = MAY_IMPORT[room]
  if (allowed === undefined) return `${from}: the room ${room} is not in the table of test/house/rooms.ts`
  return allowed.includes(other) ? undefined : `${from} imports ${to}: ${room} may not import ${other}`
}
