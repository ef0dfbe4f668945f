/** The keys of streams in `stream_key`, sealed as texts are: a new encryption key seals none of them anew, but the data keys over them. */
import { randomBytes } from "node:crypto"
import { Effect, Layer, Redacted } from "effect"
import type { JournalName } from "../../../application/ports/Journals.ts"
import { type StreamKey, StreamKeys } from "../../../application/ports/StreamKeys.ts"
import { messageOf } from "../../../domain/streams.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { SealedTexts, type Texts } from "../SealedTexts.ts"
import { streamIdOf } from "./PostgresJournals.ts"

const KEY_BYTES = 32

const ofStatement = prepared`select stream_id, sealed from stream_key where stream_id = any ($1::uuid[])`
const makeStatement = prepared`insert into stream_key (stream_id, sealed)
    select u.id, u.sealed from unnest($1::uuid[], $2::text[]) u(id, sealed) order by u.id on conflict do nothing`
const erasedStatement = prepared`select stream from erased_elsewhere limit $1`
const lookedAtStatement = prepared`with looked as (
      delete from erased_elsewhere where stream_id = any ($1::uuid[]) returning stream_id, erasure
    )
    update erasure e set forgotten = e.forgotten + l.forgotten
      from (select erasure, count(*) as forgotten from looked where stream_id = any ($2::uuid[]) group by erasure) l
      where e.id = l.erasure`

export const layer = Layer.effect(
  StreamKeys,
  Effect.gen(function* () {
    const { durable, lookups, reads } = yield* Postgres
    const texts = yield* SealedTexts
    const making = texts.writing(makeStatement)

    const of: StreamKeys["Service"]["of"] = Effect.fnUntraced(function* (streams) {
      const names = new Map(streams.map((stream) => [idOf(stream), stream]))
      const rows = yield* unavailable(lookups.rows(ofStatement, [[...names.keys()]]))
      yield* unavailable(texts.prepare(rows.map(([, sealed]) => sealed)))
      return new Map(rows.map(([id, sealed]) => [names.get(id!)!, openedKey(texts, id!, sealed ?? null)]))
    })

    return StreamKeys.of({
      of,
      make: Effect.fnUntraced(function* (streams) {
        const found = yield* of(streams)
        if (!texts.makesKeys || found.size === new Set(streams).size) return found
        const missing = streams.filter((stream) => !found.has(stream)).map(idOf)
        yield* unavailable(durable.rows(...making([missing, missing.map((id) => newKey(texts, id))])))
        return yield* of(streams)
      }),
      erased: (limit) => reading(reads.rows(erasedStatement, [limit]), (rows) => rows.map(([stream]) => stream!)),
      lookedAt: (streams, forgotten) =>
        Effect.asVoid(unavailable(durable.rows(lookedAtStatement, [streams.map(idOf), forgotten.map(idOf)])))
    })
  })
)

const idOf = (stream: string): string => messageOf(stream) ?? streamIdOf(stream as JournalName)

/** As it is to be stored. */
export const newKey = (texts: Texts, id: string): string =>
  texts.seal("streamKey", id, randomBytes(KEY_BYTES).toString("base64"))

/** After `texts.prepare`. */
export const openedKey = (texts: Texts, id: string, sealed: string | null): StreamKey => {
  if (sealed === null) return "Erased"
  try {
    return Redacted.make(new Uint8Array(Buffer.from(texts.open(sealed, { streamKey: id }), "base64")))
  } catch {
    return "Shut"
  }
}
