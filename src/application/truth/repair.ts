/**
 * Makes right the rows beside the facts. Parked messages are retried when a worker starts, by hand, and once this
 * release can read them; `repair` rebuilds queue and lists from all facts, beside a working Posthaste. A message whose
 * place in its line is lost comes back at the end.
 */
import { Effect, Result } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { messageOf, streamOf } from "../../domain/streams.ts"
import { projections } from "../log/projections/all.ts"
import { rebuildProjection } from "../log/projections/rebuild.ts"
import { Archive } from "../ports/Archive.ts"
import { DerivedRows, type Restored } from "../ports/DerivedRows.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { Parked, type ParkedStream } from "../ports/Parked.ts"
import { judgeMessage } from "./laws.ts"
import { restoreDerived, restoredOf } from "./restoreDerived.ts"
import { eachStray } from "./verify.ts"

const AT_ONCE = 500
const LOST_MAX = 1_000

/**
 * Puts parked messages where their facts say, and un-parks them; one that can't be read, or that a batch holds, stays
 * parked. Other streams are un-parked, and their readers may park them again. Answers the number of un-parked ones.
 */
export const retryParked = Effect.fnUntraced(function* (isMeant: (parked: ParkedStream) => boolean) {
  const { list, unpark } = yield* Parked
  const derived = yield* DerivedRows
  let count = 0
  let cursor: string | null = null
  do {
    const { items, nextCursor }: Effect.Success<ReturnType<typeof list>> = yield* list({ cursor, limit: AT_ONCE })
    const streams = items.filter(isMeant).map(({ stream }) => stream)
    const facts = yield* (yield* Archive).streams(streams)
    const places = streams.map((stream) => [stream, placeOf(stream, facts.get(stream))] as const)
    const others = places.flatMap(([stream, place]) => (place === "none" ? stream : []))
    yield* unpark(others)
    count +=
      others.length +
      (yield* derived.restoreQueue(places.flatMap(([, place]) => (typeof place === "object" ? place : []))))
    cursor = nextCursor
  } while (cursor !== null)
  return count
})

export const placeOf = (
  stream: string,
  facts: ReadonlyArray<LoggedFact> | undefined
): Restored | "none" | "unlawful" => {
  const messageId = messageOf(stream)
  if (messageId === null || facts === undefined) return "none"
  const lawful = judgeMessage(facts)
  return Result.isFailure(lawful) ? "unlawful" : restoredOf(messageId, facts.at(-1)!.version, lawful.success)
}

export const isMessage = ({ stream }: ParkedStream) => messageOf(stream) !== null

export const repair = Effect.gen(function* () {
  const { park } = yield* Parked
  const unparked = yield* retryParked(() => true)
  yield* dropStrays
  yield* restoreDerived((stream) => Effect.asVoid(park(new Map([[stream, "unreadable"]]))))
  for (const { name } of projections) yield* rebuildProjection(name)
  return unparked
})

const dropStrays = Effect.gen(function* () {
  const archive = yield* Archive
  const derived = yield* DerivedRows
  yield* eachStray((row) => derived.dropReady([row]))
  for (let after: MessageId | null = null; ; ) {
    const ids: ReadonlyArray<MessageId> = yield* derived.messagesInLines(after, AT_ONCE)
    if (ids.length === 0) break
    after = ids.at(-1)!
    const streams = yield* archive.streams(ids.map(streamOf))
    const places = ids.map((messageId): Restored | "unlawful" => {
      const place = placeOf(streamOf(messageId), streams.get(streamOf(messageId)))
      return place === "none" ? { messageId, read: 0, place: { type: "Out" } } : place
    })
    yield* derived.restoreQueue(
      places.flatMap((each) => (each !== "unlawful" && each.place.type === "Out" ? each : []))
    )
  }
})

export const previewRepair = Effect.gen(function* () {
  const { list, lost } = yield* Parked
  const { items } = yield* list({ cursor: null, limit: LOST_MAX })
  return { parked: items.length, lost: (yield* lost(null, LOST_MAX)).length }
})
