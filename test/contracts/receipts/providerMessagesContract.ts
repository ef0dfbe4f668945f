/** What every store promises to those who know a message only by the name its provider gave it. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { ProviderMessages } from "../../../src/application/ports/ProviderMessages.ts"
import type { AttemptOutcome } from "../../../src/domain/delivery/outcome.ts"
import { delivered, next, now, opened, type Sample, type Step, type StorePorts, settled, started } from "../sample.ts"

const accepted = (providerMessageId: string | null): AttemptOutcome => ({
  type: "Accepted",
  status: 200,
  providerMessageId,
  delivered: false,
  durationMs: 3
})

const append = Effect.fnUntraced(function* (...steps: ReadonlyArray<Step>) {
  const results = []
  for (const { entry } of steps) results.push(...(yield* (yield* EventStore).append([entry])))
  return results.map(({ type }) => type)
})

/** A message whose first attempt has started. */
const underWay = Effect.gen(function* () {
  const first = opened({ channel: "whatsapp" })
  const start = started(first.after)
  expect(yield* append(first, start)).toEqual(["Appended", "Appended"])
  return start.after
})

const receiptFor = (sample: Sample, providerMessageId: string | null) =>
  next(sample, {
    type: "RecordReceipt",
    receipt: "sent",
    providerMessageId,
    epoch: null,
    attempt: null,
    reportedAt: now(),
    error: null
  })

const find = (name: string) => Effect.flatMap(ProviderMessages, (names) => names.find(name))
// The longest there is, with what JSON must escape.
const newName = () => `wamid.HBgL"ü\\${randomUUID()}==`

export const providerMessagesContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  describe(`${name} names of messages at their providers`, () => {
    test(
      "are found as soon as the answer to the send is recorded, and not before",
      Effect.gen(function* () {
        const called = newName()
        const message = yield* underWay
        expect(yield* find(called)).toEqual([])
        yield* append(settled(message, accepted(called)))
        expect(yield* find(called)).toEqual([message.id])
      })
    )

    test(
      "are found when a receipt told them first, and once when both did",
      Effect.gen(function* () {
        const called = newName()
        const message = yield* underWay
        const receipt = receiptFor(message, called)
        yield* append(receipt)
        expect(yield* find(called)).toEqual([message.id])
        yield* append(settled(receipt.after, accepted(called)))
        expect(yield* find(called)).toEqual([message.id])
      })
    )

    test(
      "are not found when what told them was not written",
      Effect.gen(function* () {
        const called = newName()
        const message = yield* underWay
        yield* append(settled(message, delivered))
        expect(yield* append(settled(message, accepted(called)))).toEqual(["VersionConflict"])
        expect(yield* find(called)).toEqual([])
      })
    )

    test(
      "are those of every message a provider calls so, and of no other",
      Effect.gen(function* () {
        const called = newName()
        const [one, two, other, nameless] = [yield* underWay, yield* underWay, yield* underWay, yield* underWay]
        yield* append(
          settled(one, accepted(called)),
          settled(two, accepted(called)),
          settled(other, accepted(newName())),
          settled(nameless, accepted(null))
        )
        expect([...(yield* find(called))].toSorted()).toEqual([one.id, two.id].toSorted())
      })
    )
  })
}
