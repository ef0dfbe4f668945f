/** What every adapter of `Retention` promises of destinations that were removed. `layer` gives an empty store to each test. */
import { describe, expect, it } from "@effect/vitest"
import { type DateTime, Effect, type Layer } from "effect"
import { commandCircuit } from "../../../src/application/destinations/commandCircuit.ts"
import type { StoreUnavailable } from "../../../src/application/errors.ts"
import { Channels } from "../../../src/application/ports/Channels.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { type Destination, Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Parked } from "../../../src/application/ports/Parked.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import { Retention } from "../../../src/application/ports/Retention.ts"
import { initialState } from "../../../src/domain/circuit/state.ts"
import { journalOf, journalsOf } from "../../../src/domain/destination/changes.ts"
import { asWorker, claimAll } from "../deliver/claims.ts"
import { makeAccount, makeEndpoint, webhook, whatsapp } from "../destinations/samples.ts"
import { projected } from "../replays/deadLetterSamples.ts"
import { delivered, endedBefore, inMillis, newOrg, opened, type StorePorts, settled, started } from "../sample.ts"
import { write } from "../written.ts"

const HOUR = 3_600_000

/** Everything there is was before. */
const later = () => inMillis(HOUR)

/** Sweeps removed destinations to the end, in steps of two; how many went. */
export const sweepDestinations = Effect.fnUntraced(function* (removedBefore: DateTime.Utc) {
  const retention = yield* Retention
  const journals = new Map([...(yield* Channels)].map(([name, { journal }]) => [name, journal]))
  let removed = 0
  let from: string | null = null
  do {
    const sweep: Effect.Success<ReturnType<typeof retention.sweepDestinations>> = yield* retention.sweepDestinations(
      removedBefore,
      journals,
      from,
      2
    )
    removed += sweep!.removed
    from = sweep!.next
  } while (from !== null)
  return removed
})

/** Well before a test is ended from outside, which says nothing of where it waited. */
const SWEPT_WITHIN_MS = 240_000

/** Until so many are gone: a store that copies journals elsewhere first copies them. */
const swept = Effect.fnUntraced(function* (count: number) {
  const until = performance.now() + SWEPT_WITHIN_MS
  let sweeps = 0
  for (let gone = 0; ; yield* Effect.sleep("20 millis")) {
    gone += yield* sweepDestinations(later())
    sweeps += 1
    if (gone >= count) return gone
    if (performance.now() > until) {
      const how = `${gone} of ${count} destinations are gone after ${sweeps} sweeps`
      return yield* Effect.die(new Error(`${how}: the rest is kept, or journals are not copied`))
    }
  }
})

export const destinationLivesContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer))

  const removed = Effect.fnUntraced(function* (destination: Destination) {
    const kind = destination.channel === "webhook" ? webhook : whatsapp
    yield* (yield* Destinations).remove(kind, destination.orgId, destination.id)
    return destination
  })

  const sentTo = (destination: Destination, to: string = destination.id) =>
    opened({ orgId: destination.orgId, channel: destination.channel, destination: destination.id, to })

  const knownOf = Effect.fnUntraced(function* (destinations: ReadonlyArray<Destination>) {
    const known = yield* (yield* Destinations).among(destinations.map(({ id }) => id))
    return destinations.filter(({ id }) => known.has(id))
  })

  const forgetMessages = Effect.gen(function* () {
    const swept = yield* (yield* Retention).sweep(endedBefore(later()), null, 100)
    return swept!.removed
  })

  describe(`${name} lives of destinations`, () => {
    test(
      "forgets one that was removed, when its life is over, with its journals and its lane",
      Effect.gen(function* () {
        const journals = yield* Journals
        const orgId = newOrg()
        const [living, gone, paused] = [
          yield* makeEndpoint(orgId),
          yield* makeEndpoint(orgId),
          yield* makeAccount(orgId)
        ]
        for (const { id } of [living, gone]) {
          yield* commandCircuit(orgId, id, { type: "HoldCircuit", reason: "a hunch" })
        }
        yield* (yield* Destinations).setPaused(whatsapp, orgId, paused.id, true)
        yield* removed(gone)
        yield* removed(paused)
        expect((yield* journals.load(`circuit-${gone.id}`)).length).toBeGreaterThan(1)

        expect(yield* sweepDestinations(inMillis(-HOUR))).toBe(0)
        expect(yield* knownOf([living, gone, paused])).toEqual([living, gone, paused])
        expect(yield* swept(2)).toBe(2)

        expect(yield* knownOf([living, gone, paused])).toEqual([living])
        for (const { id } of [gone, paused]) {
          for (const journal of [...journalsOf(webhook.journal, id), ...journalsOf(whatsapp.journal, id)]) {
            expect(yield* journals.load(journal)).toEqual([])
          }
        }
        expect(yield* (yield* Circuits).states([gone.id])).toEqual([initialState])
        expect(yield* (yield* Circuits).orgOf(gone.id)).toBeNull()
        expect((yield* journals.load(journalOf(webhook, living.id))).length).toBeGreaterThan(0)
        expect(yield* (yield* Circuits).states([living.id])).toMatchObject([{ status: "HELD", generation: 1 }])
        expect(yield* sweepDestinations(later())).toBe(0)
      })
    )

    test(
      "keeps one of which something was told since",
      Effect.gen(function* () {
        const journals = yield* Journals
        const [quiet, told] = [yield* makeEndpoint(newOrg()), yield* makeEndpoint(newOrg())]
        for (const each of [quiet, told]) yield* removed(each)
        const held = { name: "CircuitHeld@1", data: '{"reason":null}' }
        yield* journals.append(`circuit-${told.id}`, 0, [held], inMillis(2 * HOUR), null)
        expect(yield* swept(1)).toBe(1)
        expect(yield* knownOf([quiet, told])).toEqual([told])
      })
    )

    test(
      "keeps one as long as a message points at it, wherever the message is",
      Effect.gen(function* () {
        const store = yield* EventStore
        const orgId = newOrg()
        // Whom its messages are for says nothing about the account.
        const [queued, account] = [yield* makeEndpoint(orgId), yield* makeAccount(orgId)]
        const queue = yield* Queue
        const [one, other] = [sentTo(queued), sentTo(account, "491701234567")]
        yield* store.append([one.entry, other.entry])
        for (const each of [queued, account]) yield* removed(each)
        expect(yield* sweepDestinations(later())).toBe(0)

        const claim = (yield* queue.claim(asWorker("one")))!
        expect(claim.messages).toHaveLength(2)
        // The lists do not know of them yet.
        expect(yield* sweepDestinations(later())).toBe(0)
        const ends = yield* Effect.forEach([one, other], ({ after }) => {
          const start = started(after)
          const end = settled(start.after, delivered)
          return Effect.as(write(start, end), end.after)
        })
        yield* projected(ends)
        yield* queue.release(claim.batch, [])
        expect(yield* sweepDestinations(later())).toBe(0)
        expect(yield* knownOf([queued, account])).toHaveLength(2)

        expect(yield* forgetMessages).toBe(2)
        expect(yield* swept(2)).toBe(2)
        expect(yield* knownOf([queued, account])).toEqual([])
      })
    )

    test(
      "keeps one whose message is parked, or whose own journal is",
      Effect.gen(function* () {
        const store = yield* EventStore
        const queue = yield* Queue
        const orgId = newOrg()
        const [pointed, parked] = [yield* makeEndpoint(orgId), yield* makeEndpoint(orgId)]
        const sent = sentTo(pointed)
        yield* store.append([sent.entry])
        const claim = (yield* queue.claim(asWorker("one")))!
        const start = started(sent.after)
        const end = settled(start.after, delivered)
        yield* write(start, end)
        yield* queue.release(claim.batch, [])
        const message = end.after
        for (const each of [pointed, parked]) yield* removed(each)
        const parkedStreams = [`message-${message.id}`, journalOf(webhook, parked.id)]
        yield* (yield* Parked).park(new Map(parkedStreams.map((stream) => [stream, "failed"])))
        expect(yield* sweepDestinations(later())).toBe(0)
      })
    )

    test(
      "hands out a message that comes to one that was forgotten",
      Effect.gen(function* () {
        const gone = yield* removed(yield* makeEndpoint(newOrg()))
        expect(yield* swept(1)).toBe(1)
        const late = sentTo(gone)
        yield* (yield* EventStore).append([late.entry])
        expect(yield* sweepDestinations(later())).toBe(0)
        expect(yield* claimAll).toEqual([late.after.id])
      })
    )
  })
}
