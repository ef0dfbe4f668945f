/** Stands where Meta is, and knows no phone number: nothing that a test makes up is bound, and nobody outside is asked. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

export const metaThatRefuses = async () => {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(400, { "content-type": "application/json" })
    response.end(JSON.stringify({ error: { code: 100, type: "OAuthException", message: "Unsupported get request" } }))
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => server.close().closeAllConnections()
  }
}
