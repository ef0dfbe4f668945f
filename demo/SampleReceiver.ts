/**
 * A webhook receiver to look into: it checks signatures, remembers the latest deliveries in memory and shows
 * them as JSON at `GET /`, newest first. It listens on the loopback address only.
 *
 * It is something to point a first endpoint at, not an example of how to build a receiver: it neither
 * stores what it got nor drops duplicates.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, type Scope } from "effect"

export interface Delivery {
  readonly receivedAt: string
  readonly webhookId: string | null
  readonly signature: "valid" | "invalid"
  /** What the receiver answered. */
  readonly answered: number
  readonly body: string
}

export interface Options {
  /** Taken when it is free; otherwise, and without one, any free port is. */
  readonly preferredPort?: number
  /** It answers below no other. A secret one keeps out whoever can reach the port and was not told; absent: all paths. */
  readonly path?: string
  readonly verify: (headers: IncomingHttpHeaders, body: string) => boolean
  /** The status it answers a signed delivery with, given how many it got before. */
  readonly answer?: (earlier: number) => number
}

export interface SampleReceiver {
  readonly address: "127.0.0.1"
  readonly port: number
  /** Newest first. */
  readonly deliveries: () => ReadonlyArray<Delivery>
}

const REMEMBERED = 50
const BODY_MAX_BYTES = 1024 * 1024

export const start = Effect.fn("SampleReceiver.start")(function* (
  options: Options
): Effect.fn.Return<SampleReceiver, never, Scope.Scope> {
  let deliveries: ReadonlyArray<Delivery> = []
  let count = 0

  const receive = (request: IncomingMessage, body: string): number => {
    const isSigned = options.verify(request.headers, body)
    const answered = isSigned ? (options.answer?.(count) ?? 200) : 401
    if (isSigned) count += 1
    const delivery: Delivery = {
      receivedAt: new Date().toISOString(),
      webhookId: textOf(request.headers["webhook-id"]),
      signature: isSigned ? "valid" : "invalid",
      answered,
      body
    }
    deliveries = [delivery, ...deliveries].slice(0, REMEMBERED)
    return answered
  }

  const server = createServer((request, response) => {
    if (options.path !== undefined && request.url !== options.path) return show(response, 404, { error: "not found" })
    if (request.method === "GET") return show(response, 200, deliveries)
    if (request.method !== "POST") return show(response, 405, { error: "GET shows what was received, POST delivers" })
    const chunks: Array<Buffer> = []
    let size = 0
    request.on("data", (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_MAX_BYTES) chunks.push(chunk)
    })
    request.on("end", () => {
      const status = size > BODY_MAX_BYTES ? 413 : receive(request, Buffer.concat(chunks).toString("utf8"))
      show(response, status, { received: status < 300 })
    })
  })

  const port = yield* Effect.acquireRelease(
    listen(server, options.preferredPort ?? 0).pipe(
      Effect.catch(() => listen(server, 0)),
      Effect.orDie
    ),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return { address: "127.0.0.1", port, deliveries: () => deliveries }
})

const listen = (server: ReturnType<typeof createServer>, port: number): Effect.Effect<number, Error> =>
  Effect.callback((resume) => {
    const refused = (error: Error) => resume(Effect.fail(error))
    server.once("error", refused)
    server.listen(port, "127.0.0.1", () => {
      server.off("error", refused)
      resume(Effect.succeed((server.address() as AddressInfo).port))
    })
  })

const textOf = (header: string | ReadonlyArray<string> | undefined): string | null =>
  typeof header === "string" ? header : null

const show = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(`${JSON.stringify(value, null, 2)}\n`)
}
