import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { refusalsTo } from "../../../../src/adapters/http/server/refusals.ts"
import type { AccessFact } from "../../../../src/domain/access/facts.ts"
import { OrgId } from "../../../../src/domain/ids.ts"

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
})
