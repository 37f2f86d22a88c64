/** Stops with one sentence on a Node that can't run TypeScript. Plain JavaScript, so that any Node can read it. */

const NEEDED = [22, 18]

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  console.error(
    `Forkyard needs Node ${NEEDED.join('.')} or newer and this is ${process.versions.node}: install a newer one from https://nodejs.org, then run \`npm ci\` again.`,
  )
  process.exit(1)
}
