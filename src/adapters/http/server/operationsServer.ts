/**
 * The port of a process for its operators: `/metrics`, `/healthz` and `/readyz`, without a key and without the store,
 * in every role.
 */
import { once } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Schema } from "effect"
import type { Trouble } from "../../../application/processes/Troubles.ts"
import { makeServer } from "./makeServer.ts"
import type { MetricsText } from "./metrics.ts"

export interface Readiness {
  readonly status: "ok" | "unavailable"
  /** Parts of this process that can't work. */
  readonly parts: ReadonlyArray<{ readonly part: string; readonly reason: string; readonly since: string }>
  /** Troubles of the installation; the process works all the same. */
  readonly troubles?: ReadonlyArray<Trouble>
}

interface OperationsOptions {
  readonly host: string
  readonly port: number
  readonly metrics: MetricsText
  readonly ready: Effect.Effect<Readiness>
}

class OperationsPortTaken extends Schema.TaggedError<OperationsPortTaken>()("OperationsPortTaken", {
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `can't listen on POSTHASTE_METRICS_PORT: ${(this.cause as Error).message}`
  }
}

/** Listens until the scope closes and returns the port. */
export const operationsServer = Effect.fnUntraced(function* ({ host, port, metrics, ready }: OperationsOptions) {
  const run = Effect.runPromiseWith(yield* Effect.context<never>())
  const json = (response: ServerResponse, status: number, body: object) => {
    response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
    response.end(`${JSON.stringify(body)}\n`)
  }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== "GET" && request.method !== "HEAD") return json(response, 405, { status: "only GET" })
    switch (request.url?.split("?", 1)[0]) {
      case "/metrics": {
        const { text, contentType } = metrics(request.headers.accept)
        response.writeHead(200, { "content-type": contentType })
        return response.end(text)
      }
      case "/healthz":
        return json(response, 200, { status: "ok" })
      case "/readyz": {
        const readiness = await run(ready)
        return json(response, readiness.status === "ok" ? 200 : 503, readiness)
      }
      default:
        return json(response, 404, { status: "not found", paths: ["/metrics", "/healthz", "/readyz"] })
    }
  }
  const server = makeServer()
  server.on("request", (request, response) => {
    answer(request, response).catch(() => response.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        server.listen(port, host)
        await once(server, "listening")
      },
      catch: (cause) => new OperationsPortTaken({ cause })
    }),
    () =>
      Effect.promise(async () => {
        const closed = once(server, "close")
        server.close()
        server.closeAllConnections()
        await closed
      })
  )
  const address = server.address()
  return address === null || typeof address === "string" ? port : address.port
})
