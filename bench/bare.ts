/**
 * (a) The floor under everybody: signed POSTs and nothing else. No database, no record of what was sent; 64 loops, each
 * posting its next message when the last was answered. `pool.request` is what undici recommends; the same loop on
 * `fetch` makes about a third of it, on the callback interface `dispatch` about a fifth more.
 */
import { payloadOf } from "./payload.ts"
import { serve } from "./remote.ts"
import { connections, makePoster } from "./signedPost.ts"

const bare = {
  run: async (options: {
    readonly sinkUrl: string
    readonly count: number
    readonly bytes: number
  }): Promise<ReadonlyArray<string>> => {
    const bodies = Array.from({ length: options.count }, (_, n) => payloadOf(n, options.bytes))
    const poster = makePoster(options.sinkUrl)
    let next = 0
    const loop = async () => {
      while (next < options.count) {
        const n = next++
        await poster.post(`bare-${n}`, bodies[n]!)
      }
    }
    await Promise.all(Array.from({ length: connections }, loop))
    await poster.close()
    return bodies.map((_, n) => `bare-${n}`)
  }
}

export type Bare = typeof bare
serve(bare)
