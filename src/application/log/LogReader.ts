/**
 * Reads the log of all facts for every reader in this process. Readers near the end share one tail (tail.ts), those far
 * from it share pages; streams and orgs of facts are answered from earlier facts (lookups.ts). Memory is bounded and at
 * most ten minutes old: facts are erased and forgotten in the store, and the rows' guard against readers of old facts
 * ends after a day.
 */
import { Cache, Clock, Context, Duration, Effect, Exit, Layer } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { Archive } from "../ports/Archive.ts"
import { Circuits } from "../ports/Circuits.ts"
import { EventStore, type LoggedFact, type Position } from "../ports/EventStore.ts"
import type { FromStore } from "../ports/errors.ts"
import { Journals } from "../ports/Journals.ts"
import { type History, type LoggedStream, orgsOf, streamsOf } from "./lookups.ts"
import { tail } from "./tail.ts"

export class LogReader extends Context.Service<
  LogReader,
  {
    readonly read: (after: Position | null, limit: number) => FromStore<ReadonlyArray<LoggedFact>>
    /** Answers when `read` may have more. Call it after an empty answer. */
    readonly news: (after: Position | null) => FromStore<void>
    /**
     * Begins a reader that retention knows of: nothing it has yet to read is forgotten. Facts that were read before may
     * have been, so they are read again. Once for each name.
     */
    readonly begin: (reader: string) => Effect.Effect<void>
    readonly end: FromStore<Position | null>
    /**
     * The stream of each message among the facts, from its beginning at least to the last of these facts. Forgotten
     * messages have none.
     */
    readonly streams: (facts: ReadonlyArray<LoggedFact>) => FromStore<ReadonlyMap<MessageId, History>>
    readonly orgs: (facts: ReadonlyArray<LoggedStream>) => FromStore<ReadonlyMap<string, OrgId>>
  }
>()("posthaste/application/log/LogReader") {
  static readonly layer: Layer.Layer<LogReader, never, EventStore | Journals | Circuits | Archive> = Layer.effect(
    LogReader,
    Effect.gen(function* () {
      const store = yield* EventStore
      const recent = yield* tail(store)
      const far = yield* pages(store)
      const { histories, forgetAll } = streamsOf(store)
      const readers = new Set<string>()
      const forgetRead = Effect.andThen(
        Effect.sync(() => {
          recent.forget()
          forgetAll()
        }),
        far.forget
      )
      const clock = yield* Clock.Clock
      let forgetAt = clock.monotonicTimeNanosUnsafe() + KEPT_NANOS
      const forgetOld = Effect.suspend(() => {
        const now = clock.monotonicTimeNanosUnsafe()
        if (now < forgetAt) return Effect.void
        forgetAt = now + KEPT_NANOS
        return forgetRead
      })
      return LogReader.of({
        read: Effect.fnUntraced(function* (after, limit) {
          yield* forgetOld
          return (yield* recent.after(after, limit)) ?? (yield* far.read(after, limit))
        }),
        news: recent.news,
        begin: (reader) =>
          Effect.suspend(() => {
            if (readers.has(reader)) return Effect.void
            readers.add(reader)
            return forgetRead
          }),
        end: recent.end,
        streams: histories,
        orgs: orgsOf(store, yield* Journals, yield* Circuits, yield* Archive)
      })
    })
  )
}

const KEPT_NANOS = Duration.toNanosUnsafe("10 minutes")

const PAGES_MAX = 4

interface Page {
  readonly after: Position | null
  readonly limit: number
}

/** Only full pages are shared: they are far from the end and never change. */
const pages = (store: EventStore["Service"]) =>
  Effect.map(
    Cache.makeWith(({ after, limit }: Page) => store.readAll(after, limit), {
      capacity: PAGES_MAX,
      timeToLive: (exit, { limit }) =>
        Exit.isSuccess(exit) && exit.value.length === limit ? Duration.infinity : Duration.zero
    }),
    (kept) => ({
      read: (after: Position | null, limit: number) => Cache.get(kept, { after, limit }),
      forget: Cache.invalidateAll(kept)
    })
  )
