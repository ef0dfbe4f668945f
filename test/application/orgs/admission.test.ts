/** How much an org may ask for: its rate, also by large requests, and what it may have. */
import { it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { describe, expect } from "vitest"
import * as Orgs from "../../../src/application/orgs/admission.ts"
import { type Limits, Orgs as Port, unset } from "../../../src/application/ports/Orgs.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { newOrg, type StorePorts } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const within = <A, E>(limits: Limits, body: Effect.Effect<A, E, Orgs.Admission | StorePorts>) =>
  Effect.provide(body, Layer.provideMerge(Orgs.layer(limits), MemoryPorts.layer))

const no = Effect.succeed(false)

/** How many of the requests pass, and what the first that does not is told. */
const asked = Effect.fnUntraced(function* (
  org: OrgId,
  requests: number,
  count = 1,
  bytes = 1,
  more: Partial<Orgs.Asked> = {}
) {
  const admission = yield* Orgs.Admission
  const accept = Effect.suspend(() => admission.accept(org, { count, bytes, key: null, isRepeat: no, ...more }))
  let passed = 0
  let told: Orgs.LimitReached | null = null
  for (let n = 0; n < requests; n++) {
    const exit = yield* Effect.exit(accept)
    if (Exit.isSuccess(exit)) passed += 1
    else told ??= yield* Effect.flip(accept).pipe(Effect.map((error) => error as Orgs.LimitReached))
  }
  return { passed, told }
})

describe("an org", () => {
  it.live("asks for as much as it likes where nothing limits it", () =>
    within(
      {},
      Effect.gen(function* () {
        expect(yield* asked(newOrg(), 1_000, 1_000, 1_000_000)).toEqual({ passed: 1_000, told: null })
      })
    )
  )

  it.live("may ask for a second's worth at once, and then for as much as has passed; others have their own", () =>
    within(
      { acceptsPerSecond: 10 },
      Effect.gen(function* () {
        const org = newOrg()
        const { passed, told } = yield* asked(org, 50)
        expect(passed).toBe(10)
        expect(told).toMatchObject({ limit: "acceptsPerSecond", allowed: 10, afterSeconds: 1 })
        expect((yield* asked(newOrg(), 5)).passed).toBe(5)
        yield* Effect.sleep("500 millis")
        expect((yield* asked(org, 50)).passed).toBe(5)
        yield* Effect.sleep("1 hour")
        expect((yield* asked(org, 50)).passed).toBe(10)
      })
    )
  )

  it.live("gets a batch through that is larger than its rate, and waits for it afterwards", () =>
    within(
      { acceptsPerSecond: 100 },
      Effect.gen(function* () {
        const org = newOrg()
        const { passed, told } = yield* asked(org, 2, 1_000)
        expect(passed).toBe(1)
        // It had 100 and took 1,000: 900 have to pass.
        expect(told!.afterSeconds).toBe(10)
        yield* Effect.sleep("8900 millis")
        expect((yield* asked(org, 1)).passed).toBe(0)
        yield* Effect.sleep("200 millis")
        expect((yield* asked(org, 1)).passed).toBe(1)
      })
    )
  )

  it.live("is measured by its bytes too", () =>
    within(
      { bytesPerSecond: 1_000 },
      Effect.gen(function* () {
        const { passed, told } = yield* asked(newOrg(), 10, 1, 400)
        expect(passed).toBe(3)
        expect(told).toMatchObject({ limit: "bytesPerSecond" })
      })
    )
  )

  it.live("has limits of its own, which take the place of the installation's", () =>
    within(
      { acceptsPerSecond: 1, destinations: 1 },
      Effect.gen(function* () {
        const org = newOrg()
        yield* (yield* Port).set(org, { ...unset, limits: { acceptsPerSecond: 7 } })
        expect((yield* asked(org, 50)).passed).toBe(7)
        const { another } = yield* Orgs.Admission
        yield* another(org, "destinations", no)
        yield* makeEndpoint(org)
        expect(yield* Effect.flip(another(org, "destinations", no))).toMatchObject({
          limit: "destinations",
          allowed: 1
        })
        yield* another(org, "replays", no)
      })
    )
  )

  it.live("may not have more waiting than its limit, counted with what was just accepted", () =>
    within(
      { waiting: 3 },
      Effect.gen(function* () {
        const org = newOrg()
        const { passed, told } = yield* asked(org, 10)
        expect(passed).toBe(3)
        expect(told).toMatchObject({ limit: "waiting", allowed: 3, afterSeconds: 5 })
        // Nothing waits in fact: the count is taken anew after a moment.
        yield* Effect.sleep("3 seconds")
        expect((yield* asked(org, 1)).passed).toBe(1)
      })
    )
  )

  it.live("is answered a repeat however much it has, and at its rate after the seconds that it is told", () =>
    within(
      { waiting: 3, replays: 0, acceptsPerSecond: 10 },
      Effect.gen(function* () {
        const org = newOrg()
        expect((yield* asked(org, 3)).passed).toBe(3)
        const repeated = { isRepeat: Effect.succeed(true) }
        expect((yield* asked(org, 1)).told).toMatchObject({ limit: "waiting" })
        expect((yield* asked(org, 20, 1, 1, repeated)).passed).toBe(7)
        expect((yield* asked(org, 1, 1, 1, repeated)).told).toMatchObject({
          limit: "acceptsPerSecond",
          afterSeconds: 1
        })
        const { another } = yield* Orgs.Admission
        // Where there may be none, no time makes room.
        expect(yield* Effect.flip(another(org, "replays", no))).toMatchObject({ allowed: 0, afterSeconds: 3_600 })
        yield* another(org, "replays", Effect.succeed(true))
      })
    )
  )
})

describe("a key", () => {
  const key = (id: string, acceptsPerSecond: number) => ({ key: { id, limits: { acceptsPerSecond } } })

  it.live("has limits of its own beside its org's, and takes nothing of the org's when it is refused", () =>
    within(
      { acceptsPerSecond: 10 },
      Effect.gen(function* () {
        const org = newOrg()
        const { passed, told } = yield* asked(org, 20, 1, 1, key("slow", 4))
        expect(passed).toBe(4)
        expect(told).toMatchObject({ of: "key", limit: "acceptsPerSecond", allowed: 4 })
        const quick = yield* asked(org, 20, 1, 1, key("quick", 100))
        expect(quick.passed).toBe(6)
        expect(quick.told).toMatchObject({ of: "org", allowed: 10 })
        yield* Effect.sleep("500 millis")
        expect((yield* asked(org, 20, 1, 1, key("slow", 4))).passed).toBe(2)
      })
    )
  )
})
