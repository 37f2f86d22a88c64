/** The first and the last bytes of a stream of any length, in fixed memory. */

export class KeptBytes {
  readonly #capacity: number
  #head: Buffer[] = []
  #headBytes = 0
  /** The last bytes, written round and round; made when there is more than the head takes. */
  #ring: Buffer | undefined
  #ringBytes = 0
  #total = 0

  /** @param capacity Bytes kept of the beginning, and as many of the end. */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get total(): number {
    return this.#total
  }

  /** Take bytes; what is kept of them is copied. */
  push(chunk: Buffer): void {
    this.#total += chunk.length
    const room = this.#capacity - this.#headBytes
    if (room > 0) {
      const part = Buffer.from(chunk.subarray(0, room))
      this.#head.push(part)
      this.#headBytes += part.length
    }
    if (chunk.length > room) this.#wrap(chunk.subarray(room))
  }

  /** The bytes of the beginning. */
  head(): Buffer {
    return Buffer.concat(this.#head)
  }

  /** The bytes after the head, or the last of them when they are too many. */
  tail(): Buffer {
    if (this.#ring === undefined) return Buffer.alloc(0)
    if (this.#ringBytes <= this.#capacity) return this.#ring.subarray(0, this.#ringBytes)
    const at = this.#ringBytes % this.#capacity
    return Buffer.concat([this.#ring.subarray(at), this.#ring.subarray(0, at)])
  }

  /** Whether head and tail together are everything. */
  get whole(): boolean {
    return this.#ringBytes <= this.#capacity
  }

  #wrap(bytes: Buffer): void {
    this.#ring ??= Buffer.alloc(this.#capacity)
    const skipped = Math.max(bytes.length - this.#capacity, 0)
    this.#ringBytes += skipped
    for (let rest = bytes.subarray(skipped); rest.length > 0; ) {
      const at = this.#ringBytes % this.#capacity
      const count = rest.copy(this.#ring, at)
      this.#ringBytes += count
      rest = rest.subarray(count)
    }
  }
}
