/** Endpoints that ask for a certificate, or whose own nobody else trusts: over real TLS. */
import { generateKeyPairSync, type KeyObject } from "node:crypto"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import type { TLSSocket } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { checkClient } from "../../../../src/adapters/channels/webhook/certificates.ts"
import { selfSigned } from "../net/certificate.ts"
import { ciphersOffered, usual, withGroupsOfTheFarSide } from "../net/hello.ts"
import { channelFor, endpointAt, messageTo, secret } from "./endpoint.ts"

const [server, ours, other] = ["hooks.example", "posthaste.example", "other.example"].map((host) =>
  selfSigned(host)
) as [ReturnType<typeof selfSigned>, ReturnType<typeof selfSigned>, ReturnType<typeof selfSigned>]

const newKey = (type: string, options: object): string => {
  const { privateKey } = (generateKeyPairSync as (type: string, options: object) => { privateKey: KeyObject })(
    type,
    options
  )
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString()
}

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

describe("the private key of a client certificate", () => {
  it.each([
    ["RSA of 4,096 bits", "rsa", { modulusLength: 4_096 }],
    ["RSA-PSS of 2,048 bits", "rsa-pss", { modulusLength: 2_048 }],
    ["ECDSA on P-256", "ec", { namedCurve: "P-256" }],
    ["ECDSA on P-521", "ec", { namedCurve: "P-521" }],
    ["Ed25519", "ed25519", {}]
  ] as const)("may be %s", (_, type, options) => {
    const key = newKey(type, options)
    // It is another certificate's, which is the next thing that is looked at.
    expect(checkClient(ours.cert, key)).toBe("must bring the private key of its first certificate, not another")
  })

  it.each([
    ["RSA of more than 4,096 bits", "rsa", { modulusLength: 4_104 }],
    ["RSA-PSS of more than 4,096 bits", "rsa-pss", { modulusLength: 4_104 }],
    ["ECDSA on a curve without a quick way", "ec", { namedCurve: "sect571r1" }],
    ["Ed448", "ed448", {}]
  ] as const)("may not be %s: each handshake would keep everybody waiting", (_, type, options) => {
    expect(checkClient(ours.cert, newKey(type, options))).toMatch(/^has a private key that takes long to sign with/)
  })
})

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

  it.live("is offered no key exchange in which the far side names the group", () =>
    Effect.gen(function* () {
      const offered = yield* ciphersOffered((port) =>
        Effect.scoped(
          Effect.gen(function* () {
            const settings = { caCertificate: server.cert, clientCertificate: null }
            const destination = endpointAt(`https://hooks.example:${port}/`, settings)
            const open = Effect.succeed({ destination, secrets: { secret }, previousSecrets: [] })
            const channel = yield* channelFor(open, {
              resolve: (_host, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }])
            })
            return yield* channel.send(messageTo(destination))
          })
        )
      )
      expect(offered).toContain(usual)
      expect(offered.filter((cipher) => withGroupsOfTheFarSide.includes(cipher))).toEqual([])
    })
  )
})
