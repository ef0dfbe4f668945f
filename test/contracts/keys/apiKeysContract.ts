/** What every adapter of `ApiKeys` promises. Call it once per adapter, with a layer that gives an empty store. */
import { createHash, randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { ApiKeys } from "../../../src/application/ports/ApiKeys.ts"
import { newOrg, type StorePorts } from "../sample.ts"

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
        const key = yield* keys.create(mine, "ci", myHash)
        const other = yield* keys.create(yours, "ci", yourHash)
        expect(key).toMatchObject({ orgId: mine, name: "ci" })
        expect(yield* keys.holderOf(myHash)).toEqual({ id: key.id, orgId: mine })
        expect(yield* keys.holderOf(yourHash)).toEqual({ id: other.id, orgId: yours })
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
          yield* keys.create(mine, "a", hash),
          yield* keys.create(mine, "b", newHash()),
          yield* keys.create(yours, "c", newHash())
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
        const { id } = yield* keys.create(orgId, "gone", gone)
        const kept = yield* keys.create(orgId, "stays", stays)
        expect(yield* keys.holderOf(gone)).toEqual({ id, orgId })
        expect(yield* keys.revoke(id)).toBe(true)
        expect(yield* keys.revoke(id)).toBe(false)
        expect(yield* keys.revoke(randomUUID())).toBe(false)
        expect(yield* keys.list(orgId)).toEqual([kept])
        yield* Effect.sleep("1200 millis")
        expect(yield* keys.holderOf(gone)).toBeNull()
        expect(yield* keys.holderOf(stays)).toEqual({ id: kept.id, orgId })
      })
    )
  })
}
