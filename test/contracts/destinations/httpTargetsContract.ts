/** What every adapter of `HttpTargets` promises. Call it once per adapter, with a layer that gives an empty store. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Duration, Effect, type Layer, Redacted } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { type HttpTargetSettings, HttpTargets, type Secrets } from "../../../src/application/ports/HttpTargets.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { newLane, newOrg, opened, type StorePorts } from "../sample.ts"

const settings: HttpTargetSettings = {
  url: "https://psp.example/charges?a=1",
  method: "PUT",
  headers: { authorization: "Bearer {{token}}", "x-tenant": "blue" },
  bodyFields: { key: "{{token}}" },
  idempotency: "none",
  reconcile: { url: "https://psp.example/charges/{messageId}" },
  retry: { strategy: "schedule", waitsMs: [1_000, 5_000], jitter: [0.5, 1.5] },
  rateLimit: { limit: 10, periodMs: 1_000 },
  maxInFlight: 8,
  timeoutMs: 15_000,
  onDeadLetter: "skip"
}
const token = "sk_live_a_token_that_nobody_may_see"
const secrets: Secrets = { token: Redacted.make(token), "client-key": Redacted.make("ßecret") }

/** A change applies from the next attempt: an adapter may remember settings for a second. */
const untilForgotten = Effect.sleep("1200 millis")

export const httpTargetsContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  /** The secrets an attempt gets, in the open. */
  const secretsOf = Effect.fnUntraced(function* (...id: Parameters<HttpTargets["Service"]["calling"]>) {
    const calling = yield* (yield* HttpTargets).calling(...id)
    return Object.fromEntries(Object.entries(calling!.secrets).map(([key, value]) => [key, Redacted.value(value)]))
  })

  describe(`${name} HTTP targets`, () => {
    test(
      "gives back a target as it was created, at version 1, its secrets by name",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const created = yield* targets.create(orgId, settings, secrets)
        expect(created).toMatchObject({ ...settings, orgId, secretNames: ["client-key", "token"], version: 1 })
        expect(created.updatedAt).toEqual(created.createdAt)
        expect(Math.abs(DateTime.toEpochMillis(created.createdAt) - Date.now())).toBeLessThan(10_000)
        expect(yield* targets.get(orgId, created.id)).toEqual(created)
        expect(JSON.stringify([created, yield* targets.list(orgId, { cursor: null, limit: 1 })])).not.toContain(token)
      })
    )

    test(
      "keeps what is left open as null",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const open = { ...settings, reconcile: null, retry: null, rateLimit: null, headers: {}, bodyFields: {} }
        const created = yield* targets.create(orgId, open, {})
        expect(yield* targets.get(orgId, created.id)).toMatchObject({ ...open, secretNames: [] })
      })
    )

    test(
      "gives an attempt the settings and the secrets, and tells nothing when printed",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const created = yield* targets.create(orgId, settings, secrets)
        const calling = yield* targets.calling(orgId, created.id)
        expect(calling!.target).toEqual(created)
        expect(yield* secretsOf(orgId, created.id)).toEqual({ token, "client-key": "ßecret" })
        expect(JSON.stringify(calling)).not.toContain(token)
        expect(yield* targets.calling(orgId, newLane())).toBeNull()
      })
    )

    test(
      "shows nothing of one org to another",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const [mine, yours] = [newOrg(), newOrg()]
        const { id } = yield* targets.create(mine, settings, secrets)
        expect(yield* targets.get(yours, id)).toBeNull()
        expect(yield* targets.update(yours, id, { url: "https://yours.example" }, { token: null })).toBeNull()
        expect(yield* targets.remove(yours, id)).toBe(false)
        expect(yield* targets.calling(yours, id)).toBeNull()
        expect(yield* targets.list(yours, { cursor: null, limit: 10 })).toEqual({ items: [], nextCursor: null })
        expect(yield* targets.get(mine, id)).toMatchObject({ ...settings, version: 1 })
        expect(yield* secretsOf(mine, id)).toMatchObject({ token })
      })
    )

    test(
      "changes what is named, keeps the rest and counts the change",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const created = yield* targets.create(orgId, settings, secrets)
        const changed = yield* targets.update(orgId, created.id, { url: "https://new.example", reconcile: null }, {})
        expect(changed).toMatchObject({ ...settings, url: "https://new.example", reconcile: null, version: 2 })
        expect(changed!.secretNames).toEqual(created.secretNames)
        expect(changed!.createdAt).toEqual(created.createdAt)
        expect(yield* targets.get(orgId, created.id)).toEqual(changed)
        expect(yield* targets.update(orgId, newLane(), { url: "https://new.example" }, {})).toBeNull()
      })
    )

    test(
      "replaces, adds and removes the secrets that are named, and keeps the others",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const { id } = yield* targets.create(orgId, settings, secrets)
        const given = { token: Redacted.make("new"), added: Redacted.make("a"), "client-key": null, absent: null }
        const changed = yield* targets.update(orgId, id, {}, given)
        expect(changed).toMatchObject({ ...settings, secretNames: ["added", "token"], version: 2 })
        expect(yield* secretsOf(orgId, id)).toEqual({ added: "a", token: "new" })
      })
    )

    test(
      "loses no change of two that are made at once",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const { id } = yield* targets.create(orgId, settings, {})
        const changes = [{ url: "https://new.example" }, { maxInFlight: 2 }, { timeoutMs: 9 }]
        yield* Effect.forEach(
          changes,
          (change, index) => targets.update(orgId, id, change, { [`s${index}`]: Redacted.make(String(index)) }),
          { concurrency: "unbounded" }
        )
        expect(yield* targets.get(orgId, id)).toMatchObject({ ...Object.assign({}, ...changes), version: 4 })
        yield* untilForgotten
        expect(yield* secretsOf(orgId, id)).toEqual({ s0: "0", s1: "1", s2: "2" })
      })
    )

    test(
      "lists each target of the org once, page by page",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        yield* targets.create(newOrg(), settings, {})
        const created = yield* Effect.forEach([1, 2, 3, 4, 5], () => targets.create(orgId, settings, {}))
        const seen: Array<string> = []
        let cursor: string | null = null
        do {
          const page: Effect.Success<ReturnType<typeof targets.list>> = yield* targets.list(orgId, { cursor, limit: 2 })
          expect(page.items.length).toBeLessThanOrEqual(2)
          seen.push(...page.items.map((target) => target.id))
          cursor = page.nextCursor
        } while (cursor !== null)
        expect(seen.toSorted()).toEqual(created.map((target) => target.id).toSorted())
        expect((yield* targets.list(orgId, { cursor: null, limit: 5 })).nextCursor).toBeNull()
      })
    )

    test(
      "holds back what exceeds the rate limit, until the limit is lifted or the target is gone",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const store = yield* EventStore
        const queue = yield* Queue
        const orgId = newOrg()
        const limited = { ...settings, rateLimit: { limit: 1, periodMs: 3_600_000 } }
        const [lifted, removed] = [yield* targets.create(orgId, limited, {}), yield* targets.create(orgId, limited, {})]
        const steps = [lifted, lifted, lifted, removed, removed, removed].map(({ id }) =>
          opened({ channel: "http", destination: id })
        )
        yield* store.append(steps.map(({ entry }) => entry))
        const claim = Effect.gen(function* () {
          const request = { worker: "w", limit: 100, perLane: 100, room: new Map(), lease: Duration.minutes(1) }
          const claimed = (yield* queue.claim(request))?.messages ?? []
          return [lifted, removed].map(({ id }) => claimed.filter(({ lane }) => lane === id).length)
        })
        expect(yield* claim).toEqual([1, 1])
        expect(yield* claim).toEqual([0, 0])
        yield* targets.update(orgId, lifted.id, { rateLimit: null }, {})
        expect(yield* claim).toEqual([2, 0])
        yield* targets.remove(orgId, removed.id)
        expect(yield* claim).toEqual([0, 2])
      })
    )

    test(
      "applies a change to attempts within a second",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const { id } = yield* targets.create(orgId, settings, secrets)
        yield* targets.calling(orgId, id)
        yield* targets.update(orgId, id, { url: "https://new.example" }, { token: Redacted.make("new") })
        yield* untilForgotten
        expect((yield* targets.calling(orgId, id))!.target).toMatchObject({ url: "https://new.example", version: 2 })
        expect(yield* secretsOf(orgId, id)).toMatchObject({ token: "new" })
      })
    )

    test(
      "forgets a target that was removed",
      Effect.gen(function* () {
        const targets = yield* HttpTargets
        const orgId = newOrg()
        const { id } = yield* targets.create(orgId, settings, secrets)
        yield* targets.calling(orgId, id)
        expect(yield* targets.remove(orgId, id)).toBe(true)
        expect(yield* targets.remove(orgId, id)).toBe(false)
        expect(yield* targets.get(orgId, id)).toBeNull()
        expect(yield* targets.update(orgId, id, { url: "https://new.example" }, {})).toBeNull()
        expect((yield* targets.list(orgId, { cursor: null, limit: 10 })).items).toEqual([])
        yield* untilForgotten
        expect(yield* targets.calling(orgId, id)).toBeNull()
      })
    )
  })
}
