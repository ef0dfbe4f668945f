/** A webhook receiver that remembers what reached it. `answer` decides what it says. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

export interface Received {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: string
  /** Null never answers. */
  readonly afterMs?: number | null
}

export const receiver = (answer: (request: Received, nth: number) => Answer) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const received: Array<Received> = []
      const times = new Map<string, number>()
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const each = {
            id: String(request.headers["webhook-id"]),
            headers: request.headers,
            body: Buffer.concat(chunks).toString("utf8")
          }
          const nth = (times.get(each.id) ?? 0) + 1
          times.set(each.id, nth)
          received.push(each)
          const { status, headers, body, afterMs = 0 } = answer(each, nth)
          const say = () => response.writeHead(status, headers).end(body)
          if (afterMs === 0) say()
          else if (afterMs !== null) setTimeout(say, afterMs)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received, server }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      })
  )
