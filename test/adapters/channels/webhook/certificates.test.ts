/** Endpoints that ask for a certificate, or whose own nobody else trusts: over real TLS. */
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { TLSSocket } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { selfSigned } from "../net/certificate.ts"
import { channelFor, endpointAt, messageTo, secret } from "./endpoint.ts"

const [server, ours, other] = ["hooks.example", "posthaste.example", "other.example"].map((host) =>
  selfSigned(host)
) as [ReturnType<typeof selfSigned>, ReturnType<typeof selfSigned>, ReturnType<typeof selfSigned>]

/** It takes nobody but the holder of our key. */
const strictReceiver = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly seen: Array<string>; readonly stop: () => void }>((resume) => {
    const seen: Array<string> = []
    const options = { ...server, requestCert: true, rejectUnauthorized: true, ca: ours.cert }
    const made = createServer(options, (request, response) => {
      seen.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN))
      request.resume().on("end", () => response.end("ok"))
    })
    made.listen(0, "127.0.0.1", () => {
      const { port } = made.address() as AddressInfo
      const stop = () => made.close().closeAllConnections()
      resume(Effect.succeed({ url: `https://hooks.example:${port}/`, seen, stop }))
    })
  }),
  ({ stop }) => Effect.sync(stop)
)

describe("an endpoint with certificates", () => {
  it.live("is shown ours and trusted by its own authority; without them nothing is sent", () =>
    Effect.gen(function* () {
      const far = yield* strictReceiver
      const outcomeOf = (caCertificate: string | null, clientCertificate: string | null, key?: string) =>
        Effect.gen(function* () {
          const destination = endpointAt(far.url, { caCertificate, clientCertificate })
          const secrets = { secret, ...(key !== undefined && { clientKey: Redacted.make(key) }) }
          const channel = yield* channelFor(Effect.succeed({ destination, secrets, previousSecrets: [] }), {
            resolve: (_host, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }])
          })
          return (yield* channel.send(messageTo(destination))).outcome
        })
      expect(yield* outcomeOf(server.cert, ours.cert, ours.key)).toMatchObject({ type: "Accepted" })
      expect(far.seen).toEqual(["posthaste.example"])
      for (const [ca, cert, key] of [
        [null, ours.cert, ours.key],
        [other.cert, ours.cert, ours.key],
        [server.cert, null, undefined],
        [server.cert, other.cert, other.key]
      ] as const) {
        expect((yield* outcomeOf(ca, cert, key)).type).toBe("Unreachable")
      }
      const keyless = yield* outcomeOf(server.cert, ours.cert)
      expect(keyless).toMatchObject({ type: "Refused", error: { code: "endpoint_invalid" } })
      expect(far.seen).toHaveLength(1)
    })
  )
})
