/** What every adapter of `ApiKeys` promises. Call it once per adapter, with a layer that gives an empty store. */
import { createHash, randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, type Layer } from "effect"
import { ApiKeys } from "../../../src/application/ports/ApiKeys.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { newOrg, type StorePorts } from "../sample.ts"
import { termsOf } from "./terms.ts"

const newHash = () => createHash("sha256").update(randomUUID()).digest("hex")

export const apiKeysContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} api keys`, () => {
    test(
      "tells by its hash which key it is and for whom it acts",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const [mine, yours] = [newOrg(), newOrg()]
        const [myHash, yourHash] = [newHash(), newHash()]
        const key = yield* keys.create(mine, termsOf("ci"), myHash)
        const other = yield* keys.create(yours, termsOf("ci"), yourHash)
        expect(key).toMatchObject({ orgId: mine, name: "ci" })
        expect(yield* keys.holderOf(myHash)).toMatchObject({ id: key.id, orgId: mine, revoked: false })
        expect(yield* keys.holderOf(yourHash)).toMatchObject({ id: other.id, orgId: yours })
        expect(yield* keys.holderOf(newHash())).toBeNull()
      })
    )

    test(
      "lists the keys of one org or of all, without their hashes",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const [mine, yours] = [newOrg(), newOrg()]
        const hash = newHash()
        const [a, b, c] = [
          yield* keys.create(mine, termsOf("a"), hash),
          yield* keys.create(mine, termsOf("b"), newHash()),
          yield* keys.create(yours, termsOf("c"), newHash())
        ]
        const idsOf = (list: ReadonlyArray<{ readonly id: string }>) => list.map(({ id }) => id).toSorted()
        expect(idsOf(yield* keys.list(mine))).toEqual(idsOf([a, b]))
        expect(idsOf(yield* keys.list(null))).toEqual(idsOf([a, b, c]))
        expect(yield* keys.list(newOrg())).toEqual([])
        const listed = yield* keys.list(mine)
        expect(listed.find((key) => key.id === a.id)).toEqual(a)
        expect(JSON.stringify(listed)).not.toContain(hash)
      })
    )

    test(
      "refuses a revoked key within a second",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const orgId = newOrg()
        const [gone, stays] = [newHash(), newHash()]
        const { id } = yield* keys.create(orgId, termsOf("gone"), gone)
        const kept = yield* keys.create(orgId, termsOf("stays"), stays)
        expect(yield* keys.holderOf(gone)).toMatchObject({ id, orgId, revoked: false })
        expect(yield* keys.revoke(id, null)).toBe(true)
        expect(yield* keys.revoke(id, null)).toBe(false)
        expect(yield* keys.revoke(randomUUID(), null)).toBe(false)
        expect(yield* keys.list(orgId)).toEqual([kept])
        yield* Effect.sleep("1200 millis")
        expect(yield* keys.holderOf(gone)).toMatchObject({ id, revoked: true })
        expect(yield* keys.holderOf(stays)).toMatchObject({ id: kept.id, orgId, revoked: false })
      })
    )

    test(
      "keeps what a key may, until when, and from where",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const orgId = newOrg()
        const hash = newHash()
        const terms = termsOf("narrow", {
          scopes: ["messages:send", "bodies:read"],
          expiresAt: DateTime.makeUnsafe("2100-01-01T00:00:00Z"),
          networks: ["10.0.0.0/8", "2001:db8::/32"],
          limits: { acceptsPerSecond: 20 },
          prefix: "ph_live_wxyz"
        })
        const made = yield* keys.create(orgId, terms, hash)
        expect(made).toMatchObject(terms)
        expect(yield* keys.list(orgId)).toEqual([made])
        const { name: _, prefix: __, ...held } = terms
        expect(yield* keys.holderOf(hash)).toEqual({ id: made.id, orgId, ...held, revoked: false })
      })
    )

    test(
      "revokes for another org nothing",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const [mine, yours] = [newOrg(), newOrg()]
        const key = yield* keys.create(mine, termsOf("mine"), newHash())
        expect(yield* keys.revoke(key.id, yours)).toBe(false)
        expect(yield* keys.list(mine)).toEqual([key])
        expect(yield* keys.revoke(key.id, mine)).toBe(true)
      })
    )

    test(
      "tells at once which keys are good",
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const orgId = newOrg()
        const at = (time: string) => ({ expiresAt: DateTime.makeUnsafe(time) })
        const good = yield* keys.create(orgId, termsOf("good", at("2100-01-01T00:00:00Z")), newHash())
        const over = yield* keys.create(orgId, termsOf("over", at("2001-01-01T00:00:00Z")), newHash())
        const gone = yield* keys.create(orgId, termsOf("gone"), newHash())
        const ids = [good.id, over.id, gone.id, randomUUID()]
        expect(yield* keys.living(ids)).toEqual(new Set([good.id, gone.id]))
        yield* keys.revoke(gone.id, null)
        expect(yield* keys.living(ids)).toEqual(new Set([good.id]))
      })
    )
  })
}
