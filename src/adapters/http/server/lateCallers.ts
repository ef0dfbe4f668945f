/**
 * Callers whose time is over, and which of them are to blame for it.
 *
 * Node judges the time of a handshake, of a request and of an idle connection before it reads what has arrived. After a time in
 * which the process stood still, it would so refuse what has long been there. So a caller that Node finds late is judged here:
 * first what has arrived is read, and who is not done then gets the time back in which we stood still, up to the time that
 * everybody has. Once for each request: a slow caller gains no more by it.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import type { LoopTime } from "./loopTime.ts"

export interface CallersTimes {
  /** For a handshake, and for the headers of a request. */
  readonly headersWithinMs: number
  /** For a whole request. */
  readonly requestWithinMs: number
}

interface Late {
  readonly refuse: () => void
  /** Null until its headers are there. */
  request: IncomingMessage | null
  /** In the loop's time. */
  readonly headersBy: number
  readonly wholeBy: number
}

/** How often those who got time back are looked at. */
const LOOK_EVERY_MS = 250

/** The sockets that have something to read are read between a timer and what it hands to `setImmediate`. */
const afterReading = (run: () => void): void => {
  setImmediate(run)
}

export interface LateCallers {
  /** `socket` is late with `request`, or with its handshake or headers; `refuse` ends it. */
  readonly judge: (socket: Socket, request: IncomingMessage | null, refuse: () => void) => void
  /** Its headers have come. */
  readonly asked: (request: IncomingMessage) => void
  readonly stop: () => void
}

export const lateCallers = (
  server: Server,
  { headersWithinMs, requestWithinMs }: CallersTimes,
  loop: LoopTime
): LateCallers => {
  const late = new Map<Socket, Late>()

  const look = (socket: Socket, { refuse, request, headersBy, wholeBy }: Late) => {
    if (socket.destroyed || request?.complete) late.delete(socket)
    else if (loop.now() >= (request === null ? headersBy : wholeBy)) {
      late.delete(socket)
      refuse()
    }
  }
  const lookAtAll = () => {
    for (const [socket, caller] of late) look(socket, caller)
  }
  const looking = setInterval(() => {
    if (late.size > 0) afterReading(lookAtAll)
  }, LOOK_EVERY_MS).unref()

  server.on("secureConnection", (socket: Socket) => late.delete(socket))
  // The time of an idle connection is over.
  server.on("timeout", (socket) => {
    const { bytesRead } = socket
    afterReading(() => {
      if (socket.bytesRead === bytesRead) socket.destroy()
    })
  })

  return {
    judge: (socket, request, refuse) => {
      const givenBack = loop.stoodStillMs()
      const now = loop.now()
      const caller: Late = {
        refuse,
        request,
        headersBy: now + Math.min(givenBack, headersWithinMs),
        wholeBy: now + Math.min(givenBack, requestWithinMs) + (request === null ? requestWithinMs - headersWithinMs : 0)
      }
      late.set(socket, caller)
      afterReading(() => look(socket, caller))
    },
    asked: (request) => {
      const caller = late.get(request.socket)
      if (caller !== undefined) caller.request ??= request
    },
    stop: () => clearInterval(looking)
  }
}
