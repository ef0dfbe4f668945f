/**
 * All facts in one order: `$all`, filtered by the server to events that look like facts and here to the events of our streams.
 * A server may be shared, also with another Posthaste, and keeps events of removed streams until
 * it is scavenged.
 *
 * When a read found no fact of ours, its end is remembered, so that a long stretch of foreign events is read once.
 */
import { Effect } from "effect"
import type { StoreUnavailable } from "../../application/errors.ts"
import type { LoggedFact, Position } from "../../application/ports/EventStore.ts"
import type { Ledger } from "../../application/ports/Ledger.ts"
import type { StreamKeys } from "../../application/ports/StreamKeys.ts"
import { messageOf } from "../../domain/streams.ts"
import type { EventStoreDb } from "./EventStoreDb.ts"
import { opened } from "./sealedFacts.ts"
import { circumstancesOf, type ReadEvent, recordedOf } from "./streams.ts"

const LOOK_MIN = 200

export const readLog = (db: EventStoreDb["Service"], ledger: Ledger["Service"], keys: StreamKeys["Service"]) => {
  let passed: { readonly after: Position | null; readonly to: Position } | null = null

  const ours = Effect.fnUntraced(function* (events: ReadonlyArray<ReadEvent>) {
    const ids = new Set(events.flatMap(({ stream }) => messageOf(stream) ?? []))
    const others = new Set(events.flatMap(({ stream }) => (messageOf(stream) === null ? [stream] : [])))
    const known: ReadonlySet<unknown> = ids.size === 0 ? new Set() : yield* ledger.known([...ids])
    const journals = others.size === 0 ? new Set<string>() : yield* ledger.knownJournals([...others])
    return events.filter(({ stream }) => known.has(messageOf(stream)) || journals.has(stream))
  })

  const readAll = Effect.fnUntraced(function* (
    after: Position | null,
    limit: number
  ): Effect.fn.Return<ReadonlyArray<LoggedFact>, StoreUnavailable> {
    let from = passed !== null && passed.after === after ? passed.to : after
    const found: Array<LoggedFact> = []
    while (found.length < limit) {
      const wanted = Math.max(limit - found.length, LOOK_MIN)
      const page = yield* db.readAll(from, wanted)
      found.push(...(yield* opened(keys, yield* ours(page))).map(loggedOf))
      const last = page.at(-1)?.position
      if (last != null) from = last
      if (page.length < wanted) break
    }
    if (found.length === 0 && from !== null && from !== after) passed = { after, to: from }
    return found.slice(0, limit)
  })

  const unreadSince = (after: Position | null) => Effect.map(readAll(after, 1), ([first]) => first?.at ?? null)

  /** Reads back from the end to the last event of ours. */
  const head = Effect.gen(function* () {
    let before: Position | null = null
    for (;;) {
      const page: ReadonlyArray<ReadEvent> = yield* db.readAll(before, LOOK_MIN, "back")
      const [last] = yield* ours(page)
      if (last !== undefined) return last.position
      if (page.length < LOOK_MIN) return null
      before = page.at(-1)!.position
    }
  })

  const extent = Effect.all({ head, facts: ledger.followed })

  return { readAll, unreadSince, extent }
}

export const loggedOf = (event: ReadEvent): LoggedFact => ({
  stream: event.stream,
  messageId: messageOf(event.stream),
  version: event.revision + 1,
  ...circumstancesOf(event),
  ...recordedOf(event),
  position: event.position!,
  ...(event.lacksKey === true && { lacksKey: true })
})
