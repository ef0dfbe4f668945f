import type { IncomingMessage, Server, ServerResponse } from "node:http"

/** Calls `listener` with every request, also with one whose caller waits to be told that it may send the body. */
export const onRequest = (
  server: Server,
  listener: (request: IncomingMessage, response: ServerResponse) => void
): void => {
  server.on("request", listener)
  server.on("checkContinue", listener)
}
