/**
 * A request on a connection that may be full. Node's parser reads all requests of a piece at once, some two thousand in 64 KiB, and
 * makes a request and a response of each; afterwards it is too late to close the connection. It stops at a request for an upgrade,
 * and closes the connection where nobody upgrades. So the request that is one too many looks like that.
 */
import { IncomingMessage } from "node:http"
import type { Socket } from "node:net"

/** Connections that have as many requests under way as they may. */
export const fullConnections = new WeakSet<Socket>()

export class CountedRequest extends IncomingMessage {
  private asksUpgrade: unknown
  private readonly isTooMany: boolean

  constructor(socket: Socket) {
    super(socket)
    this.isTooMany = fullConnections.has(socket)
  }

  get upgrade(): unknown {
    return this.isTooMany || this.asksUpgrade
  }

  set upgrade(asks: unknown) {
    this.asksUpgrade = asks
  }
}
