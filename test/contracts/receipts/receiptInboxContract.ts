/** What every adapter of `ReceiptInbox` promises. Call it once per adapter, with a layer that gives an empty store. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, type Layer } from "effect"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { ReceiptInbox, type ReceiptResult } from "../../../src/application/ports/ReceiptInbox.ts"
import type { DestinationId, OrgId } from "../../../src/domain/ids.ts"
import { newLane, newOrg, type StorePorts } from "../sample.ts"

const LEASE = Duration.minutes(1)
const inbox = <A, E>(use: (inbox: ReceiptInbox["Service"]) => Effect.Effect<A, E>) => Effect.flatMap(ReceiptInbox, use)
const claimed = (limit = 100, lease = LEASE) => inbox(({ claim }) => claim(limit, lease))
const rawOf = (receipts: ReadonlyArray<{ readonly raw: string }>) => receipts.map(({ raw }) => raw)

const arrived = (raw: string, account: DestinationId = newLane(), orgId: OrgId = newOrg()) => ({ raw, account, orgId })

export const receiptInboxContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} receipts that arrived`, () => {
    test(
      "are handed out as they came, whatever they are, and to nobody else",
      Effect.gen(function* () {
        // Text that a JSON type of a database would refuse, and text that is not JSON at all.
        const texts = [
          String.raw`{"a":"\u0000\ud800 “ü” 👋"}`,
          "null",
          `{"n":12345678901234567890}`,
          "a 'quote', {braces}"
        ]
        const given = texts.map((raw) => arrived(raw))
        yield* inbox(({ add }) => add(given))
        const held = yield* claimed()
        const byText = (receipts: ReadonlyArray<{ readonly raw: string }>) =>
          receipts.toSorted((a, b) => (a.raw < b.raw ? -1 : 1))
        expect(byText(held)).toEqual(byText(given).map((one) => ({ ...one, id: expect.any(String), tries: 0 })))
        expect(new Set(held.map(({ id }) => id)).size).toBe(4)
        expect(yield* claimed()).toEqual([])
      })
    )

    test(
      "are taken once, word for word and account for account, also within one call",
      Effect.gen(function* () {
        const account = newLane()
        const orgId = newOrg()
        const same = arrived("same", account, orgId)
        yield* inbox(({ add }) =>
          add([same, same, arrived("same", newLane(), orgId), arrived("other", account, orgId)])
        )
        yield* inbox(({ add }) => add([same]))
        expect(rawOf(yield* claimed()).toSorted()).toEqual(["other", "same", "same"])
        yield* inbox(({ add }) => add([same]))
        expect(yield* claimed()).toEqual([])
      })
    )

    test(
      "come back when their lease has run out, and not before",
      Effect.gen(function* () {
        yield* inbox(({ add }) => add([arrived("one")]))
        expect(rawOf(yield* claimed(1, Duration.seconds(3)))).toEqual(["one"])
        expect(yield* claimed()).toEqual([])
        yield* Effect.sleep("3100 millis")
        expect(rawOf(yield* claimed())).toEqual(["one"])
      })
    )

    test(
      "are handed out a bounded number at a time, and each to one of many who ask at once",
      Effect.gen(function* () {
        const texts = Array.from({ length: 2_000 }, (_, index) => String(index))
        yield* inbox(({ add }) => add(texts.map((raw) => arrived(raw))))
        expect(yield* claimed(2)).toHaveLength(2)
        const batches = yield* Effect.all(
          Array.from({ length: 8 }, () => claimed(200)),
          { concurrency: "unbounded" }
        )
        const rest = [...batches.flat(), ...(yield* claimed(1_000))]
        expect(new Set(rest.map(({ id }) => id)).size).toBe(1_998)
        expect(rest).toHaveLength(1_998)
      })
    )

    test(
      "go, wait or are parked as it is said of each, and saying it again changes nothing",
      Effect.gen(function* () {
        const orgId = newOrg()
        const texts = ["done", "again", "later", "parked"]
        yield* inbox(({ add }) => add(texts.map((raw) => arrived(raw, newLane(), orgId))))
        const ids = new Map((yield* claimed()).map(({ raw, id }) => [raw, id]))
        const results: ReadonlyArray<ReceiptResult> = [
          { type: "Done", id: ids.get("done")! },
          { type: "Again", id: ids.get("again")!, tries: 3, afterMs: 0 },
          { type: "Again", id: ids.get("later")!, tries: 1, afterMs: 60_000 },
          { type: "Parked", id: ids.get("parked")! }
        ]
        yield* inbox(({ settle }) => settle(results))
        yield* inbox(({ settle }) => settle(results))
        expect(yield* claimed()).toMatchObject([{ raw: "again", tries: 3 }])
        expect(yield* inbox(({ count }) => count(orgId))).toEqual({ waiting: 2, parked: 1 })
      })
    )

    test(
      "are not handed out any more once they are parked, lease or no lease",
      Effect.gen(function* () {
        yield* inbox(({ add }) => add([arrived("parked")]))
        const [parked] = yield* claimed(1, Duration.millis(50))
        yield* inbox(({ settle }) => settle([{ type: "Parked", id: parked!.id }]))
        yield* Effect.sleep("100 millis")
        expect(yield* claimed()).toEqual([])
      })
    )

    test(
      "are counted for each org",
      Effect.gen(function* () {
        const [orgId, other] = [newOrg(), newOrg()]
        yield* inbox(({ add }) =>
          add([arrived("1", newLane(), orgId), arrived("2", newLane(), orgId), arrived("3", newLane(), other)])
        )
        expect(yield* inbox(({ count }) => count(orgId))).toEqual({ waiting: 2, parked: 0 })
        expect(yield* inbox(({ count }) => count(other))).toEqual({ waiting: 1, parked: 0 })
        expect(yield* inbox(({ count }) => count(newOrg()))).toEqual({ waiting: 0, parked: 0 })
      })
    )

    test(
      "are forgotten once they have been parked for long, and the others never",
      Effect.gen(function* () {
        const orgId = newOrg()
        yield* inbox(({ add }) => add([arrived("parked", newLane(), orgId), arrived("waiting", newLane(), orgId)]))
        const parked = (yield* claimed()).find(({ raw }) => raw === "parked")!
        yield* inbox(({ settle }) => settle([{ type: "Parked", id: parked.id }]))
        yield* Effect.sleep("60 millis")
        expect(yield* inbox(({ forget }) => forget(Duration.minutes(1)))).toBe(0)
        expect(yield* inbox(({ forget }) => forget(Duration.millis(50)))).toBe(1)
        expect(yield* inbox(({ count }) => count(orgId))).toEqual({ waiting: 1, parked: 0 })
      })
    )
  })
}
