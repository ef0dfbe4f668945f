/**
 * A receiver for hostile.ts, in a process of its own: it answers what is posted to /good at once and notes when message `n` first came
 * and how often, and never answers anything else. Both are on one host and port, as the customers of one platform are.
 */
import { createServer } from "node:http"
import { monotonicNow } from "./monotonicNow.ts"
import { serve } from "./remote.ts"

let firstArrivals = new Map<number, number>()
let received = 0

const server = createServer((request, response) => {
  let text = ""
  request.setEncoding("utf8").on("data", (chunk: string) => {
    if (request.url === "/good") text += chunk
  })
  request.on("end", () => {
    if (request.url !== "/good") return
    received += 1
    const { n } = JSON.parse(text) as { n: number }
    if (!firstArrivals.has(n)) firstArrivals.set(n, monotonicNow())
    response.end()
  })
})

const twoFaced = {
  /** Answers the address to post to. */
  listen: async (): Promise<string> => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return `http://127.0.0.1:${(server.address() as { port: number }).port}`
  },
  clear: (): void => {
    firstArrivals = new Map()
    received = 0
  },
  seen: () => ({ firstArrivals, received })
}

export type TwoFaced = typeof twoFaced
serve(twoFaced)
