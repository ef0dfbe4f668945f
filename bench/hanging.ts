/**
 * A receiver that takes every request and never answers: whoever posts to it waits until his own deadline.
 *
 * Without an answer nobody sends a second request on a connection, so a connection that said something is a request.
 */
import { createServer, type Socket } from "node:net"
import { serve } from "./remote.ts"

let requests = 0
let underWay = 0
let underWayMax = 0

const onConnection = (socket: Socket): void => {
  socket.on("error", () => socket.destroy())
  socket.once("data", () => {
    requests++
    underWay++
    underWayMax = Math.max(underWayMax, underWay)
    socket.once("close", () => underWay--)
    socket.resume()
  })
}

const hanging = {
  /** Starts listening; answers with the URL to post to. */
  listen: async (): Promise<string> => {
    const server = createServer(onConnection)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    if (address === null || typeof address === "string") throw new Error("the hanging receiver has no port")
    return `http://127.0.0.1:${address.port}/hook`
  },
  /** Forgets what it saw; what is under way stays. */
  clear: (): void => {
    requests = 0
    underWayMax = underWay
  },
  seen: () => ({ requests, underWayMax })
}

export type Hanging = typeof hanging
serve(hanging)
