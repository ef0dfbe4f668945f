/**
 * A payment provider that loses answers: it takes the money, or breaks off before, and either way whoever
 * asked is none the wiser. `POST /charges` charges, `GET /charges/<message id>` tells whether it did.
 */
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

export interface Psp {
  readonly url: string
  /** Message ids in the order in which money was taken for them. */
  readonly charges: Array<string>
  /** Message ids of all requests to charge. */
  readonly requests: Array<string>
}

/** How the first request for a message ends; later ones are served well. */
export type Mood = "answersTooLate" | "breaksOffBefore"

/** Far more than any target's deadline in a test. */
const TOO_LATE_MS = 20_000

export const psp = (options: { readonly mood: Mood; readonly honoursKeys: boolean }) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const charges: Array<string> = []
      const requests: Array<string> = []
      const keys = new Set<string>()

      const charge = (request: IncomingMessage, id: string) => {
        const key = request.headers["idempotency-key"]
        if (options.honoursKeys && typeof key === "string") {
          if (keys.has(key)) return
          keys.add(key)
        }
        charges.push(id)
      }

      const server = createServer((request, response) => {
        const answer = (status: number) => response.writeHead(status).end("{}")
        if (request.method === "GET") {
          return answer(charges.includes(request.url!.slice("/charges/".length)) ? 200 : 404)
        }
        request.resume().on("end", () => {
          const id = String(request.headers["x-message-id"])
          const isFirst = !requests.includes(id)
          requests.push(id)
          if (isFirst && options.mood === "breaksOffBefore") return request.socket.resetAndDestroy()
          charge(request, id)
          if (isFirst) setTimeout(() => answer(201), TOO_LATE_MS).unref()
          else answer(201)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/charges`, charges, requests, server }
    }),
    ({ server }) =>
      Effect.promise(async () => {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      })
  )
