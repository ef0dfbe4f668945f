/** For hostile.ts, in a process of its own: a server that reads whatever it is sent and answers an id. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { serve } from "./remote.ts"

const server = createServer((request, response) => {
  request.resume().on("end", () => response.end('{"id":"00000000-0000-0000-0000-000000000000"}'))
})

const idleServer = {
  /** Answers its address. */
  listen: async (): Promise<string> => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
}

export type IdleServer = typeof idleServer
serve(idleServer)
