/** A process to be stopped by a test: one server without TLS and one with it, whose ports it prints. They answer how much came, after a while. */
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { Redacted } from "effect"
import { makeServer, type Tls } from "../../../../src/adapters/http/server/makeServer.ts"
import { selfSigned } from "../../channels/net/certificate.ts"

const limits = JSON.parse(process.argv[2]!) as Parameters<typeof makeServer>[0]
const { cert, key } = selfSigned("localhost", true)
const tls: Tls = { certificate: { certificate: cert, key: Redacted.make(key) }, whenRenewed: () => {} }

const ports = await Promise.all(
  [null, tls].map(async (its) => {
    const server = makeServer(limits, its)
    server.on("request", (request, response) => {
      let came = 0
      request.on("data", (chunk: Buffer) => {
        came += chunk.length
      })
      request.on("end", () => setTimeout(() => response.end(`<${came}>`), 50))
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    return (server.address() as AddressInfo).port
  })
)
console.log(JSON.stringify(ports))
