/** A destination takes no secret along to a place that it did not call before, unless whoever moves it knows the secret. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Result } from "effect"
import { changeDestination, createDestination } from "../../../src/application/destinations/destinations.ts"
import { shownSettings } from "../../../src/application/destinations/hiddenTexts.ts"
import type { AnyChannel } from "../../../src/application/ports/Channels.ts"
import { type Destination, Destinations } from "../../../src/application/ports/Destinations.ts"
import { maskedUrl } from "../../../src/domain/delivery/exchange.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import { selfSigned } from "../../adapters/channels/net/certificate.ts"
import { amqp, http, webhook } from "../../contracts/destinations/samples.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const org = OrgId.make("acme")
const certificate = selfSigned("client.example")
const other = selfSigned("other.example")

const create = (channel: AnyChannel, given: object, secrets: Readonly<Record<string, string>> = {}) =>
  Effect.map(createDestination(channel, org, given as Readonly<Record<string, unknown>>, secrets), (made) => {
    const { destination } = Result.getOrThrow(made)
    return destination as Destination
  })

type Given = Readonly<Record<string, unknown>>

/** The fields that are missing; empty where the change was made. */
const change = (
  channel: AnyChannel,
  { id }: Destination,
  given: Given,
  secrets: Readonly<Record<string, string | null>> = {}
) =>
  changeDestination(channel, org, id, given, secrets).pipe(
    Effect.map((changed) => {
      if (Result.isFailure(changed!)) throw new Error(JSON.stringify(changed.failure))
      return [] as ReadonlyArray<string>
    }),
    Effect.catchTag("SecretsNeeded", ({ faults }) => Effect.succeed(faults.map(({ field }) => field)))
  )

const stored = (channel: AnyChannel, { id }: Destination) =>
  Effect.flatMap(Destinations, ({ forSending }) =>
    Effect.map(forSending(org, id), (open) => ({
      settings: open!.destination.settings as unknown as Given,
      secrets: Object.fromEntries(
        Object.entries(open!.secrets).map(([name, secret]) => [name, Redacted.value(secret)])
      ),
      channel
    }))
  )

const withStore = <A, E>(body: Effect.Effect<A, E, Destinations>) =>
  body.pipe(Effect.provide(MemoryPorts.layer.pipe(Layer.fresh)), Effect.scoped)

const url = "https://shop.example/hook?v=1"

describe("a webhook endpoint that moves", () => {
  const headers = { Authorization: "Bearer abc", "x-tenant": "5" }
  const clientCertificate = certificate.cert + certificate.key

  it.effect("must bring its headers and the key of its certificate again, and nothing was changed without them", () =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url, headers, clientCertificate })
        const moved = { url: "https://elsewhere.example/hook" }
        expect(yield* change(webhook, endpoint, moved)).toEqual(["headers", "clientCertificate"])
        expect(yield* change(webhook, endpoint, { ...moved, headers })).toEqual(["clientCertificate"])
        expect(yield* change(webhook, endpoint, { ...moved, headers, clientCertificate: certificate.cert })).toEqual([
          "clientCertificate"
        ])
        expect((yield* stored(webhook, endpoint)).settings).toMatchObject({ url, headers })
        expect(yield* change(webhook, endpoint, { ...moved, headers, clientCertificate })).toEqual([])
        expect((yield* stored(webhook, endpoint)).settings).toMatchObject({ ...moved, headers })
      })
    )
  )

  it.effect("may leave them behind", () =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url, headers, clientCertificate })
        const moved = { url: "https://elsewhere.example/", headers: null, clientCertificate: null }
        expect(yield* change(webhook, endpoint, moved)).toEqual([])
        const { settings, secrets } = yield* stored(webhook, endpoint)
        expect(settings).toMatchObject({ headers: {}, clientCertificate: null })
        expect(Object.keys(secrets)).toEqual(["secret"])
      })
    )
  )

  it.effect.each([
    ["https://shop.example/another/path?v=2", false],
    ["https://shop.example:443/", false],
    ["https://SHOP.example/", false],
    ["http://shop.example/hook", true],
    ["https://shop.example:8443/hook", true],
    ["https://shop.example.evil.example/hook", true],
    ["https://www.shop.example/hook", true]
  ] as const)("to %s: %s", ([to, isMove]) =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url, headers })
        expect(yield* change(webhook, endpoint, { url: to })).toEqual(isMove ? ["headers"] : [])
      })
    )
  )

  it.effect("keeps the secret that it signs with: no request carries it", () =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url })
        const before = (yield* stored(webhook, endpoint)).secrets["secret"]
        expect(yield* change(webhook, endpoint, { url: "https://elsewhere.example/" })).toEqual([])
        expect((yield* stored(webhook, endpoint)).secrets["secret"]).toBe(before)
      })
    )
  )

  it.effect("can't give its headers back as they are shown", () =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url, headers })
        const shown = { "x-tenant": "***", authorization: "***" }
        expect(yield* change(webhook, endpoint, { headers: shown, url: "https://elsewhere.example/" })).toEqual([
          "headers"
        ])
        // One that is given and one that is not.
        const half = { authorization: "Bearer def", "x-tenant": "***" }
        expect(yield* change(webhook, endpoint, { headers: half, url: "https://elsewhere.example/" })).toEqual([
          "headers"
        ])
        // Where it stays, they stay too.
        expect(yield* change(webhook, endpoint, { headers: half })).toEqual([])
        expect((yield* stored(webhook, endpoint)).settings["headers"]).toEqual({
          authorization: "Bearer def",
          "x-tenant": "5"
        })
      })
    )
  )
})

describe("an HTTP target that moves", () => {
  const target = {
    url: "https://psp.example/charges",
    headers: { authorization: "Bearer {{token}}" },
    bodyFields: { key: "{{key}}" },
    reconcile: { url: "https://status.psp.example/by/{messageId}" }
  }
  const secrets = { token: "t", key: "k" }
  const elsewhere = { url: "https://elsewhere.example/charges" }

  it.effect("must bring each of its secrets again, or remove it", () =>
    withStore(
      Effect.gen(function* () {
        const made = yield* create(http, target, secrets)
        expect(yield* change(http, made, elsewhere)).toEqual(["secrets.key", "secrets.token"])
        expect(yield* change(http, made, elsewhere, { token: "t" })).toEqual(["secrets.key"])
        expect(yield* change(http, made, { ...elsewhere, bodyFields: null }, { token: "t", key: null })).toEqual([])
        expect((yield* stored(http, made)).secrets).toEqual({ token: "t" })
      })
    )
  )

  it.effect("must bring its headers where they hold more than names of secrets", () =>
    withStore(
      Effect.gen(function* () {
        const headers = { authorization: "Bearer {{token}}", "x-key": "a-key-of-its-own" }
        const made = yield* create(http, { ...target, headers, bodyFields: null }, { token: "t" })
        expect(yield* change(http, made, elsewhere, { token: "t" })).toEqual(["headers"])
        expect(yield* change(http, made, { ...elsewhere, headers }, { token: "t" })).toEqual([])
      })
    )
  )

  it.effect("moves as well when only its questions go elsewhere, and not to a place it knows", () =>
    withStore(
      Effect.gen(function* () {
        const made = yield* create(http, target, secrets)
        const asking = (url: string) => ({ reconcile: { url } })
        expect(yield* change(http, made, asking("https://elsewhere.example/{messageId}"))).toEqual([
          "secrets.key",
          "secrets.token"
        ])
        expect(yield* change(http, made, asking("https://psp.example/{messageId}"))).toEqual([])
        // The other place is forgotten with that.
        expect(yield* change(http, made, asking("https://status.psp.example/by/{messageId}"))).toEqual([
          "secrets.key",
          "secrets.token"
        ])
        expect(yield* change(http, made, { reconcile: null })).toEqual([])
      })
    )
  )
})

describe("an AMQP target that moves", () => {
  const at = (text: string) => `amqps://${text}`

  it.effect.each([
    ["shop@mq.example/other", []],
    ["shop@mq.example", []],
    ["shop@mq.example:5673/orders", ["url"]],
    ["shop@elsewhere.example/orders", ["url"]],
    ["admin@mq.example/orders", ["url"]],
    ["admin:again@elsewhere.example/orders", []]
  ] as const)("to %s needs %j", ([to, needed]) =>
    withStore(
      Effect.gen(function* () {
        const made = yield* create(amqp, { url: at("shop:p%40ss@mq.example/orders"), exchange: "e" })
        expect(yield* change(amqp, made, { url: at(to) })).toEqual(needed)
        const { settings, secrets } = yield* stored(amqp, made)
        expect(secrets["password"]).toBe(to.includes("again") ? "again" : "p%40ss")
        expect(String(settings["url"])).not.toContain("p%40ss")
      })
    )
  )
})

describe("the headers of a destination", () => {
  it.effect("are shown by their names", () =>
    Effect.sync(() => {
      const shown = (channel: AnyChannel, headers: object) => shownSettings(channel, { headers } as never)["headers"]
      expect(shown(webhook, { authorization: "Bearer abc", "x-a": "{{token}}" })).toEqual({
        authorization: "***",
        "x-a": "***"
      })
      const values: Readonly<Record<string, string>> = {
        "Bearer {{token}}": "Bearer {{token}}",
        "{{token}}": "{{token}}",
        "{{one}}:{{two}}": "{{one}}***{{two}}",
        "Bearer abc": "***",
        "secret {{token}}": "***{{token}}",
        "k={{token}} and more": "***{{token}}***"
      }
      for (const [value, as] of Object.entries(values)) expect(shown(http, { a: value })).toEqual({ a: as })
    })
  )

  it.effect("are refused when they stand for what there is not", () =>
    withStore(
      Effect.gen(function* () {
        const refused = yield* createDestination(webhook, org, { url, headers: { a: "***" } }, {})
        expect(refused).toMatchObject(Result.fail([{ field: "headers" }]))
        const endpoint = yield* create(webhook, { url, headers: { a: "1" } })
        const changed = yield* changeDestination(webhook, org, endpoint.id, { headers: { a: "***", b: "***" } })
        expect(changed).toMatchObject(
          Result.fail([{ field: "headers", reason: expect.stringContaining("of b is ***") }])
        )
        const target = yield* create(http, { url, headers: { a: "k={{t}}" } }, { t: "1" })
        const wrong = yield* changeDestination(http, org, target.id, { headers: { a: "***{{u}}" } })
        expect(Result.isFailure(wrong!)).toBe(true)
        expect(yield* change(http, target, { headers: { A: "***{{t}}" } })).toEqual([])
        expect((yield* stored(http, target)).settings["headers"]).toEqual({ A: "k={{t}}" })
      })
    )
  )
})

describe("the client certificate of an endpoint that stays", () => {
  it.effect("still needs its key when it changes", () =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url, clientCertificate: certificate.cert + certificate.key })
        const changed = yield* changeDestination(webhook, org, endpoint.id, { clientCertificate: other.cert })
        expect(Result.isFailure(changed!)).toBe(true)
      })
    )
  )
})

describe("the parameters of a URL", () => {
  const secret = "https://shop.example/hook?tenant=5&sig=s3cr3t#part"
  const reconcile = { url: "https://psp.example/charges/{messageId}?id={messageId}&key=k3y&flag" }

  it.effect("are shown by their names, and stay where they are given back so", () =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url: secret })
        const shown = shownSettings(webhook, (yield* stored(webhook, endpoint)).settings as never)
        expect(shown["url"]).toBe("https://shop.example/hook?tenant=***&sig=***#***")
        expect(yield* change(webhook, endpoint, { url: shown["url"], description: "new" })).toEqual([])
        expect((yield* stored(webhook, endpoint)).settings).toMatchObject({ url: secret, description: "new" })

        const target = yield* create(http, { url: "https://psp.example/charges", reconcile })
        const asked = shownSettings(http, (yield* stored(http, target)).settings as never)
        expect(asked).toMatchObject({
          url: "https://psp.example/charges",
          reconcile: { url: "https://psp.example/charges/{messageId}?id={messageId}&key=***&***" }
        })
        expect(yield* change(http, target, { reconcile: asked["reconcile"] })).toEqual([])
        expect((yield* stored(http, target)).settings).toMatchObject({ reconcile })
        expect(shownSettings(http, { ...target.settings, reconcile: null } as never)["reconcile"]).toBeNull()
      })
    )
  )

  it.effect.each([
    "https://shop.example/another?tenant=***&sig=***#***",
    "https://elsewhere.example/hook?tenant=***&sig=***#***",
    "https://shop.example/hook?sig=***",
    "https://shop.example/hook?tenant=***&sig=***"
  ])("are taken nowhere else by what is shown of them: %s", (url) =>
    withStore(
      Effect.gen(function* () {
        const endpoint = yield* create(webhook, { url: secret })
        const changed = yield* changeDestination(webhook, org, endpoint.id, { url })
        expect(Result.isFailure(changed!) && changed.failure).toEqual([
          { field: "url", reason: "it holds ***, which stands for one that is not shown" }
        ])
        expect((yield* stored(webhook, endpoint)).settings["url"]).toBe(secret)
      })
    )
  )

  it.effect("need not be given again where another URL of the destination moves", () =>
    withStore(
      Effect.gen(function* () {
        const target = yield* create(http, { url: "https://psp.example/charges?key=k3y", reconcile })
        expect(yield* change(http, target, { url: "https://elsewhere.example/charges" })).toEqual([])
        expect((yield* stored(http, target)).settings).toMatchObject({
          url: "https://elsewhere.example/charges",
          reconcile
        })
      })
    )
  )

  it("are all there is to hide", () => {
    for (const [url, shown] of [
      ["https://a.example", "https://a.example"],
      ["https://a.example/b?", "https://a.example/b?"],
      ["https://a.example/b?c", "https://a.example/b?***"],
      ["https://a.example/b?c=&d=e=f", "https://a.example/b?c=&d=***"],
      ["https://a.example/b?c=x{messageId}y", "https://a.example/b?c=***{messageId}***"],
      ["https://a.example/b?c=d?e", "https://a.example/b?c=***"],
      ["not a URL?c=d", "not a URL?c=***"]
    ] as const) {
      expect([url, maskedUrl(url), maskedUrl(shown)]).toEqual([url, shown, shown])
    }
  })
})
