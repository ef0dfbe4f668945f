import { DateTime, Duration } from "effect"
import { describe, expect, it } from "vitest"
import type { Process } from "../../../src/application/ports/Processes.ts"
import { type Trouble, type TroubleReason, troublesOf } from "../../../src/application/processes/Troubles.ts"

const now = DateTime.makeUnsafe("2026-11-19T02:00:00Z")
const ago = (seconds: number) => DateTime.subtract(now, { seconds })

const process = (roles: ReadonlyArray<string>, change: Partial<Process> = {}): Process => ({
  ...{ id: roles.join(), host: "shop-1", pid: 1, version: "1", broker: false, clockOffsetMs: 0, alive: true },
  ...{ since: ago(900), lastSeen: ago(1), roles },
  ...change
})
const gone = (roles: ReadonlyArray<string>, seconds: number, change: Partial<Process> = {}) =>
  process(roles, { alive: false, lastSeen: ago(seconds), ...change })

type Known = Parameters<typeof troublesOf>[0]
const well: Known = {
  processes: [process(["api"]), process(["worker"]), process(["projector"])],
  freshness: new Map([
    ["messages", { asOf: now, behindSeconds: 0 }],
    ["audit", { asOf: ago(1), behindSeconds: 1 }]
  ]),
  ...{ stall: null, commandsSince: null, oldest: null, parked: [] }
}
const found = (change: Partial<Known> = {}): ReadonlyArray<Trouble> => troublesOf({ ...well, ...change }, now)
const reasons = (change: Partial<Known> = {}): ReadonlyArray<TroubleReason> => found(change).map(({ reason }) => reason)

describe("what is wrong as a whole", () => {
  it("is nothing while workers and projectors live, also without a relay that nobody needs", () => {
    expect(found()).toEqual([])
    expect(found({ processes: [process(["api", "worker", "relay", "projector"])] })).toEqual([])
  })

  it("is a role that no living process has, since its last process was seen", () => {
    const processes = [process(["api"]), gone(["worker"], 70), gone(["worker", "projector"], 50)]
    expect(found({ processes })).toMatchObject([
      { reason: "NO_WORKER", since: ago(50) },
      { reason: "NO_PROJECTOR", since: ago(50) }
    ])
  })

  it("is told without a time when the last process stopped in order, for then nobody knows", () => {
    expect(found({ processes: [process(["api", "projector"])] })).toMatchObject([{ reason: "NO_WORKER", since: null }])
  })

  it("is no relay when commands of transactions have waited for 10 s, and not before", () => {
    expect(reasons({ commandsSince: ago(9) })).toEqual([])
    expect(found({ commandsSince: ago(11) })).toMatchObject([{ reason: "NO_RELAY", since: ago(11) }])
    expect(reasons({ commandsSince: ago(11), processes: [...well.processes, process(["relay"])] })).toEqual([])
    expect(reasons({ commandsSince: ago(11), processes: [...well.processes, gone(["relay"], 30)] })).toEqual([
      "NO_RELAY"
    ])
  })

  it("is no relay when a living process knows the broker, and no living relay does", () => {
    const broker = { broker: true }
    const others = [process(["worker"]), process(["projector"])]
    const known = [...others, process(["api"], broker)]
    expect(reasons({ processes: known })).toEqual(["NO_RELAY"])
    expect(reasons({ processes: [...known, process(["relay"])] })).toEqual(["NO_RELAY"])
    expect(reasons({ processes: [...known, process(["relay"], broker)] })).toEqual([])
    expect(reasons({ processes: [...known, gone(["relay"], 40, broker)] })).toEqual(["NO_RELAY"])
    expect(reasons({ processes: [...others, process(["api"]), gone(["relay"], 40, broker)] })).toEqual([])
  })

  it("is a projection that lacks facts of more than 30 s ago, whoever lives", () => {
    const freshness = (seconds: number) =>
      new Map([...well.freshness, ["audit", { asOf: ago(seconds), behindSeconds: seconds }] as const])
    expect(reasons({ freshness: freshness(30) })).toEqual([])
    expect(found({ freshness: freshness(31) })).toMatchObject([
      { reason: "PROJECTION_BEHIND", since: ago(31), says: expect.stringContaining("the projection audit") }
    ])
    const all = new Map([...freshness(31), ["messages", { asOf: ago(45), behindSeconds: 45 }] as const])
    expect(found({ freshness: all })).toMatchObject([
      { since: ago(45), says: expect.stringContaining("messages, audit") }
    ])
  })

  it("names whose transaction is in the way beside the sentence, and never in it", () => {
    const stall = { pid: 4711, application: "nightly report", since: ago(90) }
    const oldest = { kind: "prepared", pid: null, name: "transfer-17", database: "shop", since: ago(400) } as const
    const troubles = found({ stall, oldest })
    expect(troubles).toMatchObject([
      { reason: "LOG_STALLED", since: ago(90), transaction: { pid: 4711, name: "nightly report" } },
      { reason: "LONG_TRANSACTION", since: ago(400), transaction: oldest }
    ])
    for (const { says } of troubles) expect(says).not.toMatch(/4711|nightly|transfer|shop/)
    expect(Duration.toSeconds(DateTime.distance(troubles[0]!.since!, now))).toBe(90)
  })
})
