/** JSON that another program was to write. */

/** The value of a JSON text; undefined, which no schema here accepts, for any other text. */
export function parseJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    // Whoever asked tells what is wrong, in words of its own.
    return undefined
  }
}
