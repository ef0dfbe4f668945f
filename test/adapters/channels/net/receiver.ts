/** Receivers on real sockets, well-behaved and otherwise. */
import net, { type AddressInfo, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

/** A request as it came over the wire. */
export interface Received {
  readonly line: string
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

export interface Receiver {
  readonly port: number
  readonly url: string
  readonly requests: Array<Received>
  readonly connections: () => number
  /** Sockets that are open at this moment. */
  readonly open: ReadonlySet<Socket>
}

const BLANK_LINE = "\r\n\r\n"

const takeRequest = (bytes: Buffer): { readonly request: Received; readonly rest: Buffer } | null => {
  const end = bytes.indexOf(BLANK_LINE)
  if (end === -1) return null
  const [line = "", ...fields] = bytes.toString("latin1", 0, end).split("\r\n")
  const headers = new Map(
    fields.map((field) => {
      const colon = field.indexOf(":")
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const
    })
  )
  const from = end + BLANK_LINE.length
  const to = from + Number(headers.get("content-length") ?? 0)
  return bytes.length < to
    ? null
    : { request: { line, headers, body: bytes.subarray(from, to) }, rest: bytes.subarray(to) }
}

/** Hands every socket to `onConnection` and every complete request to `onRequest`; both answer as they like. */
export const receiver = (on: {
  readonly request?: (socket: Socket, request: Received, count: number) => void
  readonly connection?: (socket: Socket) => void
}): Effect.Effect<Receiver, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Receiver & { readonly server: net.Server }>((resume) => {
      const requests: Array<Received> = []
      const open = new Set<Socket>()
      let connections = 0
      const server = net.createServer({ noDelay: true }, (socket) => {
        connections += 1
        open.add(socket)
        socket.on("error", () => {}).on("close", () => open.delete(socket))
        on.connection?.(socket)
        let bytes: Buffer = Buffer.alloc(0)
        socket.on("data", (chunk) => {
          bytes = Buffer.concat([bytes, chunk])
          for (let taken = takeRequest(bytes); taken !== null; taken = takeRequest(bytes)) {
            bytes = taken.rest
            requests.push(taken.request)
            on.request?.(socket, taken.request, requests.length)
          }
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const url = `http://127.0.0.1:${port}/hooks?a=b`
        resume(Effect.succeed({ port, url, requests, open, connections: () => connections, server }))
      })
    }),
    ({ server, open }) =>
      Effect.sync(() => {
        server.close()
        for (const socket of open) socket.destroy()
      })
  )

/** Waits until it is so; the test's own time limit ends a wait in vain. */
export const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (isSo() ? Effect.void : Effect.andThen(Effect.sleep("2 millis"), until(isSo))))

/** Writes a whole answer. */
export const answer = (
  socket: Socket,
  status: number | string,
  headers: Readonly<Record<string, string>> = {},
  body: string | Buffer = ""
): void => {
  const fields = Object.entries({ "content-length": String(Buffer.byteLength(body)), ...headers })
  socket.write(`HTTP/1.1 ${status} X\r\n${fields.map(([name, text]) => `${name}: ${text}\r\n`).join("")}\r\n`)
  socket.write(body)
}
