import { DateTime } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"
import { after, decide, evolve, initial, type Overdue, replay } from "../../../src/domain/overdue/decider.ts"
import type { OverdueFact } from "../../../src/domain/overdue/facts.ts"

const acme = OrgId.make("acme")
const now = DateTime.makeUnsafe("2026-03-01T10:00:00Z")
const LIMIT = 60

/** What is decided when the oldest due message has waited so long; null when nothing is due. */
const look = (overdue: Overdue, waitedSeconds: number | null, limitSeconds: number | null = LIMIT) =>
  decide(overdue, acme, {
    now,
    limitSeconds,
    oldest:
      waitedSeconds === null
        ? null
        : {
            messageId: MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01"),
            destination: DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02"),
            dueAt: DateTime.subtract(now, { seconds: waitedSeconds })
          }
  })
const typesOf = (facts: ReadonlyArray<OverdueFact>) => facts.map(({ type }) => type)

const late = replay(look(initial, LIMIT + 1))

describe("a target that is calm", () => {
  it.each([
    ["nothing is due", null, []],
    ["the oldest waits exactly as long as allowed", LIMIT, []],
    ["the oldest waits longer", LIMIT + 1, ["OverdueBegan"]]
  ])("when %s", (_, waited, types) => {
    expect(typesOf(look(initial, waited))).toEqual(types)
  })

  it("says what was allowed and which message waits", () => {
    expect(look(initial, 90)).toEqual([
      {
        type: "OverdueBegan",
        orgId: acme,
        limitSeconds: LIMIT,
        dueAt: DateTime.subtract(now, { seconds: 90 }),
        messageId: "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01",
        destination: "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02"
      }
    ])
  })

  it("stays calm when it does not watch", () => {
    expect(look(initial, 1_000_000, null)).toEqual([])
  })
})

describe("a target that is late", () => {
  it.each([
    ["waits longer still", 1_000_000, []],
    ["has come back below the limit only just", LIMIT - 1, []],
    ["waits half as long as allowed", LIMIT / 2, ["OverdueEnded"]]
  ])("when the oldest %s", (_, waited, types) => {
    expect(typesOf(look(late, waited))).toEqual(types)
  })

  it("recovers when nothing is due, and when it does not watch any more", () => {
    expect(typesOf(look(late, null))).toEqual(["OverdueEnded"])
    expect(typesOf(look(late, 1_000_000, null))).toEqual(["OverdueEnded"])
  })

  it("can be late again after it has recovered", () => {
    const calm = replay([...look(initial, LIMIT + 1), ...look(late, null)])
    expect(typesOf(look(calm, LIMIT + 1))).toEqual(["OverdueBegan"])
  })
})

describe("overdue", () => {
  it("begins and ends in turn, whatever is seen", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat({ max: 2 * LIMIT }))), (looks) => {
        let overdue = initial
        const history: Array<OverdueFact> = []
        for (const waited of looks) {
          const facts = look(overdue, waited)
          history.push(...facts)
          overdue = facts.reduce(evolve, overdue)
        }
        history.forEach(({ type }, index) => {
          expect(type).toBe(index % 2 === 0 ? "OverdueBegan" : "OverdueEnded")
        })
        expect(replay(history).value).toBe(overdue.value)
        // The last one tells all.
        expect(after(history.at(-1) ?? null).value).toBe(overdue.value)
      })
    )
  })

  it("that never began can't end", () => {
    const ended = { type: "OverdueEnded", orgId: acme } as const
    expect(() => evolve(initial, ended)).toThrow("OverdueEnded cannot follow CALM")
    expect(() => replay([ended, ended])).toThrow("OverdueEnded cannot follow CALM")
  })
})
