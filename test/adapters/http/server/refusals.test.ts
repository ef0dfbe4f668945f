import { DateTime, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { generateKey, hashOf, prefixOf, storedHash } from "../../../../src/adapters/http/server/apiKey.ts"
import { refusalsTo } from "../../../../src/adapters/http/server/refusals.ts"
import { ApiKeys } from "../../../../src/application/ports/ApiKeys.ts"
import { EventStore } from "../../../../src/application/ports/EventStore.ts"
import type { AccessFact } from "../../../../src/domain/access/facts.ts"
import { OrgId } from "../../../../src/domain/ids.ts"
import { termsOf } from "../../../contracts/keys/terms.ts"
import { start } from "../served.ts"

const noted = () => {
  const facts: Array<AccessFact> = []
  return { facts, ...refusalsTo((fact) => Effect.sync(() => void facts.push(fact))) }
}
const holder = { id: "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01", orgId: OrgId.make("acme") }

describe("refused logins", () => {
  it("are told once for each key, reason and address, with their number", () => {
    const { facts, note, tell } = noted()
    note(null, "unknown", "192.0.2.1")
    note(holder, "expired", "192.0.2.1")
    note(null, "unknown", "192.0.2.1")
    Effect.runSync(tell)
    expect(facts).toEqual([
      { type: "LoginRefused", key: null, reason: "unknown", address: "192.0.2.1", count: 2 },
      { type: "LoginRefused", key: holder, reason: "expired", address: "192.0.2.1", count: 1 }
    ])
    Effect.runSync(tell)
    expect(facts).toHaveLength(2)
  })

  it("cost a few facts, however many there are and from however many addresses", () => {
    const { facts, note, tell } = noted()
    for (let i = 0; i < 50_000; i++) note(null, "unknown", `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
    for (let i = 0; i < 10; i++) note(holder, "network", "192.0.2.9")
    Effect.runSync(tell)
    expect(facts.length).toBe(21)
    const counts = facts.map((fact) => (fact.type === "LoginRefused" ? fact.count : 0))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(50_010)
  })

  it("of each kind are told by the server, with the key where it is known and the address", async () => {
    const { call, run, stop } = await start()
    const store = await run(EventStore)
    const made = (terms: Parameters<typeof termsOf>[1]) =>
      run(
        Effect.gen(function* () {
          const key = generateKey()
          const own = termsOf("a key", { ...terms, prefix: prefixOf(key) })
          const { id } = yield* (yield* ApiKeys).create(holder.orgId, own, storedHash(hashOf(key)))
          return { id, key }
        })
      )
    const revoked = await made({})
    await run(Effect.flatMap(ApiKeys, ({ revoke }) => revoke(revoked.id, null)))
    const expired = await made({ expiresAt: DateTime.makeUnsafe(Date.now()) })
    const elsewhere = await made({ networks: ["192.0.2.0/24"] })
    const path = "/api/v1/outbound/stats"
    const asked = [generateKey(), revoked.key, expired.key, elsewhere.key].map((key) =>
      call("GET", path, { key, org: null })
    )
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([401, 401, 401, 403])
    await stop()
    const facts = await Effect.runPromise(store.readAll(null, 100))
    const told = facts
      .filter(({ name }) => name.startsWith("LoginRefused@"))
      .map(({ data }) => JSON.parse(data))
      .map(({ key, reason, address, count }) => [reason, key?.id ?? null, address, count])
    expect(told.toSorted()).toEqual([
      ["expired", expired.id, "127.0.0.1", 1],
      ["network", elsewhere.id, "127.0.0.1", 1],
      ["revoked", revoked.id, "127.0.0.1", 1],
      ["unknown", null, "127.0.0.1", 1]
    ])
  })
})
