/** What is wrong with the files of the API's certificate is said in one line at the start, and nothing of the key in it. */
import { X509Certificate } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ConfigProvider, Effect, Result } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { urlOf } from "../../src/setup/banner.ts"
import { CERTIFICATE_FILE, KEY_FILE, nameIn, readCertificate } from "../../src/setup/certificate.ts"
import { settings } from "../../src/setup/config.ts"
import { selfSigned } from "../adapters/channels/net/certificate.ts"

const directory = mkdtempSync(join(tmpdir(), "posthaste-certificate-"))
afterAll(() => rmSync(directory, { recursive: true }))

const file = (name: string, text: string) => {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

const pair = selfSigned("posthaste.example", true)
const good = { certificate: file("good.crt", pair.cert), key: file("good.key", pair.key) }
const now = new Date("2026-11-19T00:00:00Z")
const other = selfSigned("posthaste.example")
const expired = selfSigned("posthaste.example", true, ["200101000000Z", "261118000000Z"])
const early = selfSigned("posthaste.example", true, ["261120000000Z", "491231235959Z"])

const linesOf = (given: Record<string, string>) =>
  settings.pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(given))),
    Effect.match({ onFailure: ({ message }) => message, onSuccess: ({ certificate }) => certificate }),
    Effect.runPromise
  )

describe("the files of a certificate", () => {
  it("are read when they fit each other", () => {
    const read = Result.getOrThrow(readCertificate(good, now))
    expect(read.leaf.subject).toContain("posthaste.example")
  })

  it("may hold a chain, whose first certificate is the server's", () => {
    const certificate = file("chain.crt", pair.cert + other.cert)
    expect(Result.isSuccess(readCertificate({ ...good, certificate }, now))).toBe(true)
    const reversed = file("reversed.crt", other.cert + pair.cert)
    expect(readCertificate({ ...good, certificate: reversed }, now)).toMatchObject(
      Result.fail({ variable: KEY_FILE, problem: expect.stringContaining("is not the key of") })
    )
  })

  it.each([
    ["are missing", { certificate: "/nowhere/a.crt" }, CERTIFICATE_FILE, /can't be read: ENOENT.*nowhere/],
    ["are missing their key", { key: "/nowhere/a.key" }, KEY_FILE, /can't be read: ENOENT/],
    ["hold something else", { certificate: file("no.crt", "hello") }, CERTIFICATE_FILE, /holds no certificate in PEM/],
    ["hold a key that is none", { key: file("no.key", "hello") }, KEY_FILE, /holds no private key in PEM/],
    [
      "hold what is broken behind their certificate",
      { certificate: file("broken.crt", `${pair.cert}${pair.cert.replace(/^M.{20}/m, "M".repeat(21))}`) },
      CERTIFICATE_FILE,
      /holds certificates that can't be used together/
    ],
    ["hold another's key", { key: file("other.key", other.key) }, KEY_FILE, /is not the key of the first certificate/],
    [
      "hold what has expired",
      { certificate: file("old.crt", expired.cert), key: file("old.key", expired.key) },
      CERTIFICATE_FILE,
      /expired at 2026-11-18T00:00:00/
    ],
    [
      "hold what is not valid yet",
      { certificate: file("early.crt", early.cert), key: file("early.key", early.key) },
      CERTIFICATE_FILE,
      /not valid before 2026-11-20T00:00:00/
    ]
  ] as const)("are refused when they %s", (_, files, variable, problem) => {
    const read = readCertificate({ ...good, ...files }, now)
    expect(Result.isFailure(read) && read.failure).toMatchObject({ variable, problem: expect.stringMatching(problem) })
    expect(JSON.stringify(read)).not.toContain(pair.key.split("\n")[1]!)
  })

  it("are named together, and judged with all settings", async () => {
    expect(await linesOf({})).toBe(null)
    expect(await linesOf({ [CERTIFICATE_FILE]: good.certificate })).toBe(
      `${KEY_FILE} is required with ${CERTIFICATE_FILE}`
    )
    expect(await linesOf({ [KEY_FILE]: good.key })).toBe(`${CERTIFICATE_FILE} is required with ${KEY_FILE}`)
    const wrong = { [CERTIFICATE_FILE]: good.certificate, [KEY_FILE]: join(directory, "no.key") }
    expect(await linesOf(wrong)).toMatch(new RegExp(`^${KEY_FILE} holds no private key`))
    expect(await linesOf({ [CERTIFICATE_FILE]: good.certificate, [KEY_FILE]: good.key })).toMatchObject(good)
  })
})

describe("the address of an API with a certificate", () => {
  it("is one that the certificate is good for", () => {
    const leaf = new X509Certificate(pair.cert)
    expect(urlOf("0.0.0.0", 8443, leaf)).toBe("https://127.0.0.1:8443")
    expect(urlOf("localhost", 8443, leaf)).toBe("https://localhost:8443")
    // It knows this machine by its name.
    expect(urlOf("10.1.2.3", 8443, leaf)).toBe("https://localhost:8443")
    expect(urlOf("127.0.0.1", 8080)).toBe("http://127.0.0.1:8080")
    expect(nameIn(new X509Certificate(other.cert), "10.1.2.3")).toBe("10.1.2.3")
    // A wildcard is no address.
    const many = selfSigned("posthaste.example", ["*.posthaste.example", "api.posthaste.example"])
    expect(nameIn(new X509Certificate(many.cert), "10.1.2.3")).toBe("api.posthaste.example")
  })
})
