/** The API with a certificate from files: what it says at the start, who gets in, and a renewal without a restart. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:https"
import { connect as plain } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect, type PeerCertificate } from "node:tls"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { selfSigned, signed } from "../adapters/channels/net/certificate.ts"
import { posthaste } from "../servers/commandLine.ts"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { runToEnd } from "../servers/posthaste.ts"
import { operatorKey, product } from "../servers/product.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "posthaste-tls-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** As tools that renew certificates do it: whole, by renaming. */
const put = (path: string, text: string) => {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

interface Met {
  readonly protocol: string | null
  readonly certificate: PeerCertificate
}

/** A handshake, and nothing more. */
const meet = (url: string, ca: string, options: object = {}) =>
  new Promise<Met>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), ca, ...options }, () => {
      resolve({ protocol: socket.getProtocol(), certificate: socket.getPeerCertificate() })
      socket.destroy()
    })
    socket.once("error", reject)
  })

/** Over a connection that is kept. */
const asking = (ca: string) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca })
  const ask = (url: string) =>
    new Promise<{ status: number; serial: string; reused: boolean }>((resolve, reject) => {
      const asked = request(url, { agent }, (response) => {
        const { serialNumber } = (
          response.socket as unknown as { getPeerCertificate: () => PeerCertificate }
        ).getPeerCertificate()
        response
          .resume()
          .once("end", () =>
            resolve({ status: response.statusCode!, serial: serialNumber, reused: asked.reusedSocket })
          )
      })
      asked.once("error", reject).end()
    })
  return { ask, close: () => agent.destroy() }
}

const fingerprintOf = async (url: string, ca: string) => (await meet(url, ca)).certificate.fingerprint256

describe("the API with a certificate", () => {
  it.live("speaks TLS 1.2 and later and nothing else, says so, and takes a renewed one without a restart", () =>
    Effect.gen(function* () {
      const database = Redacted.value(yield* freshDatabase)
      const home = yield* directory
      const [certificate, key] = [join(home, "tls.crt"), join(home, "tls.key")]
      // The renewed one comes from an authority, by way of another one: callers trust the first, and are shown the second.
      const [first, second] = [selfSigned("posthaste.example", true), signed("renewed.example", true)]
      put(certificate, first.cert)
      put(key, first.key)
      const both = first.cert + second.root
      const server = yield* product(database, {
        POSTHASTE_TLS_CERT_FILE: certificate,
        POSTHASTE_TLS_KEY_FILE: key,
        POSTHASTE_METRICS_PORT: "0",
        POSTHASTE_LOG_FORMAT: "text"
      })
      yield* Effect.promise(async () => {
        const url = server.url!
        expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
        expect((await meet(url, both)).protocol).toBe("TLSv1.3")
        expect((await meet(url, both, { maxVersion: "TLSv1.2" })).protocol).toBe("TLSv1.2")
        const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" }
        await expect(meet(url, both, old)).rejects.toThrow()
        await expect(meet(url, second.root)).rejects.toThrow(/self-signed/)
        await expect(fetch(`${url.replace("https", "http")}/healthz`)).rejects.toThrow()

        // The command line trusts an authority that Node is told of.
        const env = { POSTHASTE_URL: url, POSTHASTE_OPERATOR_KEY: operatorKey, POSTHASTE_ORG: "acme" }
        const stranger = await posthaste(env)(["stats"])
        expect(stranger.code).toBe(1)
        expect(stranger.err).toMatch(
          /certificate of https:\S+ is not trusted \(self-signed certificate[^)]*\): .*NODE_EXTRA_CA_CERTS/
        )
        const trusting = await posthaste({ ...env, NODE_EXTRA_CA_CERTS: certificate })(["stats"])
        expect([trusting.code, trusting.err]).toEqual([0, ""])

        // The port of metrics is for the inside and stays plain.
        await expect.poll(() => server.printed()).toMatch(/http:\/\/127\.0\.0\.1:\d+/)
        const [inside] = /http:\/\/127\.0\.0\.1:\d+/.exec(server.printed())!
        expect((await fetch(`${inside}/healthz`)).status).toBe(200)

        // A renewal, first half of it.
        const { ask, close } = asking(both)
        const before = await fingerprintOf(url, both)
        expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200, reused: false })
        put(certificate, second.cert + second.between)
        await expect.poll(() => server.printed()).toContain("stays as it was: POSTHASTE_TLS_KEY_FILE is not the key of")
        expect(await fingerprintOf(url, both)).toBe(before)
        put(key, second.key)
        await expect.poll(() => fingerprintOf(url, both)).not.toBe(before)
        await expect.poll(() => server.printed()).toContain("the certificate of the API was renewed")
        expect((await meet(url, second.root)).certificate.subject.CN).toBe("renewed.example")
        // Who was connected stays so.
        expect(await ask(`${url}/healthz`)).toMatchObject({ status: 200, reused: true })
        close()
        // What can't be used changes nothing.
        const after = await fingerprintOf(url, both)
        put(key, "hello")
        await expect.poll(() => server.printed()).toContain("holds no private key in PEM")
        expect(await fingerprintOf(url, both)).toBe(after)
        expect(server.printed()).not.toContain("PRIVATE KEY")
        expect(await server.stop()).toBe(0)
      })
    })
  )

  it.live("counts a handshake that never ends among the connections of its address, and ends on time", () =>
    Effect.gen(function* () {
      const database = Redacted.value(yield* freshDatabase)
      const home = yield* directory
      const [certificate, key] = [join(home, "tls.crt"), join(home, "tls.key")]
      const pair = selfSigned("posthaste.example", true)
      put(certificate, pair.cert)
      put(key, pair.key)
      const server = yield* product(database, {
        POSTHASTE_ROLES: "api",
        POSTHASTE_TLS_CERT_FILE: certificate,
        POSTHASTE_TLS_KEY_FILE: key,
        POSTHASTE_CONNECTIONS_PER_ADDRESS: "4"
      })
      yield* Effect.promise(async () => {
        const { hostname, port } = new URL(server.url!)
        // Four that hold what there is: two in the middle of the handshake, two behind it.
        const silent = [1, 2].map(() => plain(Number(port), hostname))
        const done = [1, 2].map(() => connect({ host: hostname, port: Number(port), ca: pair.cert }))
        for (const socket of [...silent, ...done]) socket.on("error", () => {})
        await Promise.all(done.map((socket) => new Promise((resolve) => socket.once("secureConnect", resolve))))
        const fifth = asking(pair.cert)
        await expect(fifth.ask(`${server.url}/healthz`)).rejects.toThrow()
        silent[0]!.destroy()
        await expect.poll(() => fifth.ask(`${server.url}/healthz`).catch(() => null)).toMatchObject({ status: 200 })
        fifth.close()
        for (const socket of [...silent, ...done]) socket.destroy()
        expect(await server.stop()).toBe(0)
      })
    })
  )

  it.live("does not start with one that can't be used", () =>
    Effect.gen(function* () {
      const home = yield* directory
      const expired = selfSigned("posthaste.example", true, ["200101000000Z", "210101000000Z"])
      put(join(home, "tls.crt"), expired.cert)
      put(join(home, "tls.key"), expired.key)
      yield* Effect.promise(async () => {
        const { exitCode, printed } = await runToEnd({
          POSTHASTE_DATA_DIR: join(home, "data"),
          POSTHASTE_TLS_CERT_FILE: join(home, "tls.crt"),
          POSTHASTE_TLS_KEY_FILE: join(home, "tls.key")
        })
        expect(exitCode).toBe(1)
        expect(printed.trim()).toBe(
          "posthaste: POSTHASTE_TLS_CERT_FILE holds a certificate that expired at 2021-01-01T00:00:00.000Z"
        )
      })
    })
  )
})
