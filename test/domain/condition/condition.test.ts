import { DateTime } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  AWAY_MS,
  after,
  type Condition,
  decide,
  evolve,
  initial,
  lookAtBacklog,
  lookAtBroker,
  replay,
  unwatched
} from "../../../src/domain/condition/decider.ts"
import { type ConditionFact, journalOf, targetOf } from "../../../src/domain/condition/facts.ts"
import { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"

const about = { orgId: OrgId.make("acme"), condition: "oldestDue" } as const
const now = DateTime.makeUnsafe("2026-03-01T10:00:00Z")
const ago = (milliseconds: number) => DateTime.subtract(now, { milliseconds })
const LIMIT = 60
const messageId = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01")
const destination = DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")

const backlog = (waitedSeconds: number | null) =>
  lookAtBacklog(
    now,
    waitedSeconds === null ? null : { messageId, destination, dueAt: ago(waitedSeconds * 1000) },
    LIMIT
  )
const broker = (reach: readonly ["away" | "reached", number] | null) =>
  lookAtBroker(now, reach === null ? null : { away: reach[0] === "away", since: ago(reach[1]) })
const typesAfter = (condition: Condition, look: ReturnType<typeof backlog>) =>
  decide(condition, about, look).map(({ type }) => type)

const began: ConditionFact = { type: "ConditionBegan", ...about, since: now }
const ended: ConditionFact = { type: "ConditionEnded", ...about }
const present = replay([began])
const both = { absent: initial, present }

describe("a look", () => {
  it.each([
    ["absent", "nothing is due", backlog(null), []],
    ["absent", "the oldest waits exactly as long as allowed", backlog(LIMIT), []],
    ["absent", "the oldest waits longer", backlog(LIMIT + 1), ["ConditionBegan"]],
    ["present", "the oldest waits longer still", backlog(1_000_000), []],
    ["present", "the oldest has come back below the limit only just", backlog(LIMIT - 1), []],
    ["present", "the oldest waits half as long as allowed", backlog(LIMIT / 2), ["ConditionEnded"]],
    ["present", "nothing is due any more", backlog(null), ["ConditionEnded"]],
    ["absent", "the broker is reached", broker(["reached", 1_000_000]), []],
    ["absent", "the broker restarts", broker(["away", AWAY_MS - 1]), []],
    ["absent", "the broker has been away for long enough", broker(["away", AWAY_MS]), ["ConditionBegan"]],
    ["absent", "no process tries to reach the broker", broker(null), []],
    ["present", "the broker is away still", broker(["away", 1_000_000]), []],
    ["present", "the broker is back at this moment", broker(["reached", 0]), ["ConditionEnded"]],
    ["present", "no process tries to reach the broker any more", broker(null), []],
    ["absent", "the target does not watch", unwatched, []],
    ["present", "the target does not watch any more", unwatched, ["ConditionEnded"]]
  ] as const)("of a target whose condition is %s, when %s", (state, _, look, types) => {
    expect(typesAfter(both[state], look)).toEqual(types)
  })

  it("tells the limit and the message that waits", () => {
    expect(decide(initial, about, backlog(90))).toEqual([
      { type: "ConditionBegan", ...about, since: ago(90_000), limitSeconds: LIMIT, messageId, destination }
    ])
  })
})

describe("a condition", () => {
  it("begins and ends in turn, whatever is seen", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat({ max: 2 * LIMIT }))), (looks) => {
        let condition = initial
        const history: Array<ConditionFact> = []
        for (const waited of looks) {
          const facts = decide(condition, about, backlog(waited))
          history.push(...facts)
          condition = facts.reduce(evolve, condition)
        }
        for (const [index, { type }] of history.entries()) {
          expect(type).toBe(index % 2 === 0 ? "ConditionBegan" : "ConditionEnded")
        }
        expect(replay(history).value).toBe(condition.value)
        // The last one tells all.
        expect(after(history.at(-1) ?? null).value).toBe(condition.value)
      })
    )
  })

  it.each([
    ["that never began can't end", [ended], "ConditionEnded cannot follow ABSENT"],
    ["that began can't begin again", [began, began], "ConditionBegan cannot follow PRESENT"]
  ])("%s", (_, history, reason) => {
    expect(() => replay(history)).toThrow(reason)
  })

  it("has a stream that names its target", () => {
    expect(targetOf(journalOf("broker", destination))).toBe(destination)
    expect(targetOf(`circuit-${destination}`)).toBeNull()
  })
})
