/** What every adapter of `Endpoints` promises. Call it once per adapter, with a layer that gives an empty store. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer, Redacted } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { type EndpointSettings, Endpoints } from "../../../src/application/ports/Endpoints.ts"
import { newLane, newOrg, type StorePorts } from "../sample.ts"

const settings: EndpointSettings = {
  url: "https://receiver.example/hooks?a=1",
  eventTypes: ["invoice.paid", "invoice.sent"],
  description: "the “billing” receiver",
  signature: "standard",
  retry: { strategy: "schedule", waitsMs: [1_000, 5_000], jitter: [0.5, 1.5] },
  rateLimit: { limit: 10, periodMs: 1_000 },
  maxInFlight: 8,
  timeoutMs: 15_000,
  onDeadLetter: "skip",
  headers: { "x-tenant": "blue" }
}
const secret = Redacted.make("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

/** A change applies from the next attempt: an adapter may remember settings for a second. */
const untilForgotten = Effect.sleep("1200 millis")

export const endpointsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  describe(`${name} endpoints`, () => {
    test(
      "gives back an endpoint as it was created, at version 1",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const created = yield* endpoints.create(orgId, settings, secret)
        expect(created).toMatchObject({ ...settings, orgId, version: 1 })
        expect(created.updatedAt).toEqual(created.createdAt)
        expect(Math.abs(DateTime.toEpochMillis(created.createdAt) - Date.now())).toBeLessThan(10_000)
        expect(yield* endpoints.get(orgId, created.id)).toEqual(created)
      })
    )

    test(
      "keeps what is left open as null",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const open = { ...settings, eventTypes: null, description: null, retry: null, rateLimit: null, headers: {} }
        const created = yield* endpoints.create(orgId, open, secret)
        expect(yield* endpoints.get(orgId, created.id)).toMatchObject(open)
      })
    )

    test(
      "shows nothing of one org to another",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const [mine, yours] = [newOrg(), newOrg()]
        const { id } = yield* endpoints.create(mine, settings, secret)
        expect(yield* endpoints.get(yours, id)).toBeNull()
        expect(yield* endpoints.update(yours, id, { url: "https://yours.example" })).toBeNull()
        expect(yield* endpoints.remove(yours, id)).toBe(false)
        expect(yield* endpoints.signing(yours, id)).toBeNull()
        expect(yield* endpoints.list(yours, { cursor: null, limit: 10 })).toEqual({ items: [], nextCursor: null })
        expect(yield* endpoints.get(mine, id)).toMatchObject(settings)
      })
    )

    test(
      "changes what is named, keeps the rest and counts the change",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const created = yield* endpoints.create(orgId, settings, secret)
        const changed = yield* endpoints.update(orgId, created.id, { url: "https://new.example", eventTypes: null })
        expect(changed).toMatchObject({ ...settings, url: "https://new.example", eventTypes: null, version: 2 })
        expect(changed!.createdAt).toEqual(created.createdAt)
        expect(yield* endpoints.get(orgId, created.id)).toEqual(changed)
        expect(yield* endpoints.update(orgId, newLane(), { url: "https://new.example" })).toBeNull()
      })
    )

    test(
      "loses no change of two that are made at once",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const { id } = yield* endpoints.create(orgId, settings, secret)
        const changes = [{ url: "https://new.example" }, { description: "new" }, { maxInFlight: 2 }, { timeoutMs: 9 }]
        yield* Effect.forEach(changes, (change) => endpoints.update(orgId, id, change), { concurrency: "unbounded" })
        expect(yield* endpoints.get(orgId, id)).toMatchObject({ ...Object.assign({}, ...changes), version: 5 })
      })
    )

    test(
      "lists each endpoint of the org once, page by page",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        yield* endpoints.create(newOrg(), settings, secret)
        const created = yield* Effect.forEach([1, 2, 3, 4, 5], () => endpoints.create(orgId, settings, secret))
        const seen: Array<string> = []
        let cursor: string | null = null
        do {
          const page: Effect.Success<ReturnType<typeof endpoints.list>> = yield* endpoints.list(orgId, {
            cursor,
            limit: 2
          })
          expect(page.items.length).toBeLessThanOrEqual(2)
          seen.push(...page.items.map((endpoint) => endpoint.id))
          cursor = page.nextCursor
        } while (cursor !== null)
        expect(seen.toSorted()).toEqual(created.map((endpoint) => endpoint.id).toSorted())
        expect((yield* endpoints.list(orgId, { cursor: null, limit: 5 })).nextCursor).toBeNull()
      })
    )

    test(
      "gives an attempt the settings and the secrets, and tells nothing when printed",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const created = yield* endpoints.create(orgId, settings, secret)
        const signing = yield* endpoints.signing(orgId, created.id)
        expect(signing!.endpoint).toEqual(created)
        expect(signing!.secrets.map((value) => Redacted.value(value))).toEqual([Redacted.value(secret)])
        expect(JSON.stringify(signing)).not.toContain("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        expect(yield* endpoints.signing(orgId, newLane())).toBeNull()
      })
    )

    test(
      "applies a change to attempts within a second",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const { id } = yield* endpoints.create(orgId, settings, secret)
        yield* endpoints.signing(orgId, id)
        yield* endpoints.update(orgId, id, { url: "https://new.example" })
        yield* untilForgotten
        expect((yield* endpoints.signing(orgId, id))!.endpoint).toMatchObject({
          url: "https://new.example",
          version: 2
        })
      })
    )

    test(
      "forgets an endpoint that was removed",
      Effect.gen(function* () {
        const endpoints = yield* Endpoints
        const orgId = newOrg()
        const { id } = yield* endpoints.create(orgId, settings, secret)
        yield* endpoints.signing(orgId, id)
        expect(yield* endpoints.remove(orgId, id)).toBe(true)
        expect(yield* endpoints.remove(orgId, id)).toBe(false)
        expect(yield* endpoints.get(orgId, id)).toBeNull()
        expect(yield* endpoints.update(orgId, id, { url: "https://new.example" })).toBeNull()
        expect((yield* endpoints.list(orgId, { cursor: null, limit: 10 })).items).toEqual([])
        yield* untilForgotten
        expect(yield* endpoints.signing(orgId, id)).toBeNull()
      })
    )
  })
}
