/** What somebody who connects over TLS offers: a receiver that reads the hello and hangs up. */
import net, { type AddressInfo } from "node:net"
import { Effect } from "effect"

/** The ciphers in the hello of whoever `connectTo` connects, as they are numbered. */
export const ciphersOffered = <A, E>(connectTo: (port: number) => Effect.Effect<A, E>) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    let hello: Buffer = Buffer.alloc(0)
    const server = net.createServer((socket) => {
      socket
        .on("error", () => {})
        .on("data", (chunk) => {
          hello = Buffer.concat([hello, chunk])
          if (hello.length < 5 || hello.length < 5 + hello.readUInt16BE(3)) return
          socket.destroy()
          server.close()
          // A record, a handshake, its version, 32 random bytes and a session stand before the ciphers.
          const at = 5 + 4 + 2 + 32 + 1 + hello[43]!
          const count = hello.readUInt16BE(at) / 2
          const ciphers = Array.from({ length: count }, (_, n) => hello.toString("hex", at + 2 + 2 * n, at + 4 + 2 * n))
          resume(Effect.succeed(ciphers))
        })
    })
    server.listen(0, "127.0.0.1", () => {
      Effect.runFork(Effect.ignore(connectTo((server.address() as AddressInfo).port)))
    })
  })

/** ECDHE-RSA-AES128-GCM-SHA256. */
export const usual = "c02f"
/** DHE-RSA with AES of 128 and 256 bits, in all modes, and with ChaCha20. */
export const withGroupsOfTheFarSide = ["009e", "009f", "0067", "006b", "0033", "0039", "ccaa"]
