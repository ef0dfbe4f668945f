/**
 * The pages for readers agree with each other and with the code: every link leads somewhere, every variable and every
 * route stands in its page, and the code samples verify what Posthaste signs. What the sentences say is left to people.
 */
import { createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { Effect, Redacted } from "effect"
import { OpenApi } from "effect/http-api"
import { describe, expect, it } from "vitest"
import {
  generateSecret,
  publicKeyOf,
  signEd25519,
  signingKey,
  signLegacy,
  signStandard
} from "../src/adapters/channels/webhook/signature.ts"
import { apiWith } from "../src/adapters/http/Api.ts"
import { Channels } from "../src/application/ports/Channels.ts"
import * as AllChannels from "../src/setup/channels.ts"

const root = join(import.meta.dirname, "..")
const read = (page: string) => readFileSync(join(root, page), "utf8")

const pages: ReadonlyArray<string> = [
  ...readdirSync(root),
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((name) => `docs/${name}`)
].filter((name) => name.endsWith(".md"))

/** A page without its code, in which brackets and hashes mean something else. */
const proseOf = (page: string) => read(page).replace(/^```.*?^```/gms, "")

/** The anchors of a page, as GitHub makes them of headings. */
const anchorsOf = (page: string): ReadonlySet<string> =>
  new Set(
    [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-")
    )
  )

interface Link {
  readonly page: string
  readonly href: string
}

const links: ReadonlyArray<Link> = pages.flatMap((page) =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, href]) => ({ page, href: href! }))
    .filter(({ href }) => !/^https?:/.test(href))
)

const isBroken = ({ page, href }: Link): boolean => {
  const [path, anchor] = href.split("#") as [string, string | undefined]
  const target = path === "" ? page : normalize(join(dirname(page), path))
  if (!existsSync(join(root, target))) return true
  if (anchor === undefined) return false
  return statSync(join(root, target)).isDirectory() || !anchorsOf(target).has(anchor)
}

describe("the pages", () => {
  it("are there", () => {
    expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/README.md", "docs/api.md"]))
    expect(links.length).toBeGreaterThan(50)
  })

  it("link to files and headings that exist", () => {
    expect(links.filter(isBroken)).toEqual([])
  })

  it("are all found from the index", () => {
    const linked = new Set(
      links.filter(({ page }) => page === "docs/README.md").map(({ href }) => normalize(join("docs", href)))
    )
    const found = pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md")
    expect(found.filter((page) => !linked.has(page))).toEqual([])
  })
})

describe("docs/configuration.md", () => {
  it("has every variable that is read, and no other", () => {
    const named = [...read("src/setup/config.ts").matchAll(/(\w+)\(\s*"([A-Z][A-Z_]+)"/g)]
    // A secret may come from a file or a command as well.
    const known = named.flatMap(([, read, name]) =>
      read === "secret" ? [name!, `${name}_FILE`, `${name}_COMMAND`] : [name!]
    )
    const documented = [...read("docs/configuration.md").matchAll(/^\| `([A-Z_]+)` \||^`([A-Z_]+)` is reserved/gm)]
    expect(new Set(documented.map(([, name, reserved]) => name ?? reserved))).toEqual(new Set(known))
  })
})

describe("docs/api.md", () => {
  const openApi = OpenApi.fromApi(apiWith(Effect.runSync(Effect.provide(Channels, AllChannels.unused)).values()))

  it("has every route of the OpenAPI document, and no other", () => {
    const served = Object.entries(openApi.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`)
    )
    const documented = [...read("docs/api.md").matchAll(/^\|(.*?)\|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`((?:[A-Z]+ )+)(\/\S+)`/g)].flatMap(([, methods, path]) =>
        methods!
          .trim()
          .split(" ")
          .map((method) => `${method} ${path}`)
      )
    )
    expect(documented.toSorted()).toEqual(served.toSorted())
  })

  it("has every field of a message, asked for and answered", () => {
    const [asked, answered] = read("docs/api.md").split("### A message in an answer")
    const fieldsIn = (text: string) =>
      new Set(
        [...text.matchAll(/^\|([^|]*)\|/gm)].flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, f]) => f))
      )
    const fieldsOf = (shape: string) => {
      const { properties } = openApi.components.schemas[shape] as { readonly properties: Record<string, unknown> }
      return Object.keys(properties)
    }
    expect(fieldsOf("MessageRequest").filter((field) => !fieldsIn(asked!).has(field))).toEqual([])
    expect(fieldsOf("Message").filter((field) => !fieldsIn(answered!).has(field))).toEqual([])
  })
})

describe("the receivers in the pages", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
  const id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
  const timestamp = "1614265330"
  const body = '{"test": 2432232314}'
  const now = Number(timestamp)
  const privateKey = generateSecret("ed25519")
  const keys = [signingKey(Redacted.make(secret))] as const

  type Verify = (headers: Record<string, string>, body: string | Buffer, now: number) => boolean

  /** The function of the sample below the heading, as a reader would copy it. */
  const sampleOf = (page: string, heading: string): Verify => {
    const [, below] = read(page).split(`# ${heading}\n`)
    const [text] = /^function isFromPosthaste\(.*?^}$/ms.exec(below!)!
    const [, x] = /^const x = (.*)$/m.exec(below!) ?? [null, "null"]
    const known = { createHmac, timingSafeEqual, verify, key: Buffer.from(secret.slice("whsec_".length), "base64") }
    const publicKey = new Function(
      "createPublicKey",
      "process",
      `const x = ${x}
      return x && createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })`
    )(createPublicKey, {
      env: { WEBHOOK_PUBLIC_KEY: publicKeyOf(privateKey) }
    })
    return new Function(...Object.keys(known), "publicKey", `${text}; return isFromPosthaste`)(
      ...Object.values(known),
      publicKey
    ) as Verify
  }

  it("believe a standard signature and nothing else", () => {
    const verify = sampleOf("README.md", "Verifying a signature")
    const signature = signStandard(keys, id, timestamp, Buffer.from(body))
    expect(read("docs/receiving-webhooks.md")).toContain(`\`${signature}\``)
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature }
    expect(verify(headers, body, now)).toBe(true)
    expect(verify({ ...headers, "webhook-signature": `v1,other ${signature}` }, body, now)).toBe(true)
    expect(verify(headers, `${body} `, now)).toBe(false)
    expect(verify(headers, body, now + 301)).toBe(false)
    expect(verify({}, body, now)).toBe(false)
  })

  it("believe a signature by a private key and nothing else", () => {
    const verify = sampleOf("docs/receiving-webhooks.md", "Public keys")
    const bytes = Buffer.from(body)
    const signature = signEd25519([generateSecret("ed25519"), privateKey].map(signingKey), id, timestamp, bytes)
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature }
    expect(verify(headers, bytes, now)).toBe(true)
    expect(verify({ ...headers, "webhook-signature": signature.split(" ")[0]! }, bytes, now)).toBe(false)
    expect(verify(headers, Buffer.from(`${body} `), now)).toBe(false)
    expect(verify(headers, bytes, now + 301)).toBe(false)
    expect(verify({}, bytes, now)).toBe(false)
  })

  it("believe an older signature and nothing else", () => {
    const verify = sampleOf("docs/receiving-webhooks.md", "Receivers that can't change")
    const headers = { "x-timestamp": timestamp, "x-signature": signLegacy(keys[0], timestamp, Buffer.from(body)) }
    expect(verify(headers, body, now)).toBe(true)
    expect(verify(headers, `${body} `, now)).toBe(false)
    expect(verify(headers, body, now + 301)).toBe(false)
    expect(verify({}, body, now)).toBe(false)
  })
})

describe("docs/metrics.md", () => {
  const metrics = ["deliveryMetrics", "Metrics", "installationMetrics", "processMetrics"]
    .map((file) => read(`src/adapters/prometheus/${file}.ts`))
    .join("\n")

  it("has every metric of ours, with its labels, and no other", () => {
    const made = [...metrics.matchAll(/"(posthaste_\w+)"/g)].map(([, name]) => name!)
    const documented = [...read("docs/metrics.md").matchAll(/^\| `(posthaste_\w+)/gm)].map(([, name]) => name!)
    expect(new Set(documented)).toEqual(new Set(made))
    expect(documented.length).toBeGreaterThan(20)
  })

  it("has every alert of the rules, and no other", () => {
    const alerts = [...read("deploy/prometheus/posthaste.rules.yml").matchAll(/- alert: (\w+)/g)].map(
      ([, name]) => name!
    )
    const documented = [...read("docs/metrics.md").matchAll(/^\| (`Posthaste.+?`) \|/gm)]
      .flatMap(([, names]) => names!.split(", "))
      .map((name) => name.replaceAll("`", ""))
    expect(new Set(documented)).toEqual(new Set(alerts))
    // And what to do first.
    const inRunbook = [...read("docs/runbook.md").matchAll(/^\| (`Posthaste.+?`) \|/gm)]
      .flatMap(([, names]) => names!.split(", "))
      .map((name) => name.replaceAll("`", ""))
    expect(inRunbook.toSorted()).toEqual(alerts.toSorted())
  })
})
