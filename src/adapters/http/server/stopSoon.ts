/**
 * Makes a server close soon after it is told to. Node's own `close` lets connections that were busy at that moment stay in
 * keep-alive afterwards, and stops watching for slow requests.
 */
import type { Server, ServerResponse } from "node:http"
import { onRequest } from "./onRequest.ts"

/** How long a stop waits for requests under way. Appends take milliseconds; a slow caller could take for ever. */
const STOP_MAX_MS = 10_000

/** Answers that never end by themselves. A stop ends them: subscribers reconnect with the last id they saw. */
export const endless = new WeakSet<ServerResponse>()

export const stopSoon = (server: Server): void => {
  const underWay = new Set<ServerResponse>()
  onRequest(server, (_, response) => {
    underWay.add(response)
    response.on("close", () => underWay.delete(response))
  })
  const close = server.close.bind(server)
  server.close = (callback) => {
    close(callback)
    for (const response of underWay) if (endless.has(response)) response.destroy()
    const since = performance.now()
    const sweep = setInterval(() => {
      if (underWay.size === 0 || performance.now() - since > STOP_MAX_MS) server.closeAllConnections()
      else server.closeIdleConnections()
    }, 20)
    server.once("close", () => clearInterval(sweep))
    return server
  }
}
