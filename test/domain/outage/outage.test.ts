import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { OrgId } from "../../../src/domain/ids.ts"
import { AWAY_MS, after, decide, evolve, initial, type Outage, replay } from "../../../src/domain/outage/decider.ts"
import type { OutageFact } from "../../../src/domain/outage/facts.ts"

const acme = OrgId.make("acme")
const now = DateTime.makeUnsafe("2026-03-01T10:00:00Z")
const ago = (milliseconds: number) => DateTime.subtract(now, { milliseconds })

/** What is decided when the broker has been away, or back, for so long; null when no process tries to reach it. */
const look = (outage: Outage, reach: readonly ["away" | "reached", number] | null, watches = true) =>
  decide(outage, acme, {
    now,
    watches,
    reach: reach === null ? null : { away: reach[0] === "away", since: ago(reach[1]) }
  })
const lost: OutageFact = { type: "BrokerLost", orgId: acme, since: ago(AWAY_MS) }
const back: OutageFact = { type: "BrokerBack", orgId: acme }

describe("a broker that was reached", () => {
  it.each([
    ["is reached still", ["reached", 1_000_000] as const, []],
    ["restarts", ["away", AWAY_MS - 1] as const, []],
    ["has been away for long enough", ["away", AWAY_MS] as const, [lost]],
    ["is tried by nobody", null, []]
  ])("when it %s", (_, reach, facts) => {
    expect(look(initial, reach)).toEqual(facts)
  })

  it("is no outage for a target that does not watch", () => {
    expect(look(initial, ["away", 1_000_000], false)).toEqual([])
  })
})

describe("a broker that was lost", () => {
  const outage = replay([lost])
  it.each([
    ["is away still", ["away", 1_000_000] as const, []],
    ["is back at this moment", ["reached", 0] as const, [back]],
    ["is tried by nobody", null, []]
  ])("when it %s", (_, reach, facts) => {
    expect(look(outage, reach)).toEqual(facts)
  })

  it("is back for a target that does not watch any more", () => {
    expect(look(outage, ["away", 1_000_000], false)).toEqual([back])
  })

  it("is told by the last fact alone, as by all of them", () => {
    const all = [lost, back, lost, back]
    for (let count = 0; count <= all.length; count++) {
      const history = all.slice(0, count)
      expect(after(history.at(-1) ?? null).value).toBe(replay(history).value)
    }
  })

  it("is lost once, and back once", () => {
    expect(() => evolve(outage, lost)).toThrow("BrokerLost")
    expect(() => evolve(replay([lost, back]), back)).toThrow("BrokerBack")
  })
})
