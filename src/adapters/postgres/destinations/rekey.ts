/**
 * Seals anew, with the newest key, all values that an older one sealed. Each part is one statement and leaves values of the newest key
 * alone, so a killed run can go on. A destination that changes meanwhile is read again. Processes with both keys work on undisturbed.
 */
import { Effect, Redacted } from "effect"
import type { FromStore } from "../../../application/ports/errors.ts"
import { Postgres, prepared, unavailable, unprepared } from "../Postgres.ts"
import * as EncryptionCheck from "./encryptionCheck.ts"
import { headersOf, lookupHash, parametersOf, sealedIn, secretOf, urlSealed } from "./sealedValues.ts"
import { type SealingKey, sealing } from "./sealing.ts"

interface Row {
  readonly id: string
  readonly orgId: string
  readonly channel: string
  readonly headers: string | null
  readonly url: string | null
  readonly reconcile: string | null
  readonly secrets: Readonly<Record<string, string>>
  readonly previous: ReadonlyArray<{ readonly name: string; readonly sealed: string; readonly until: string }>
  readonly lookup: Buffer | null
}

const rowsStatement = prepared`select id, org_id as "orgId", channel, settings ->> 'headers' as headers, settings ->> 'url' as url,
      settings #>> '{reconcile,url}' as reconcile, secrets,
      previous_secrets as previous, lookup_hash as lookup
    from destination where removed_at is null and ($1::uuid is null or id > $1) order by id limit $2`
const countStatement = unprepared`select count(*)::int as count from destination where removed_at is null`
// Writes nothing where the destination changed since it was read.
const writeStatement = prepared`update destination d set
      settings = d.settings || case when n.headers is null then '{}' else jsonb_build_object('headers', n.headers) end
        || case when n.url is null then '{}' else jsonb_build_object('url', n.url) end
        || case when n.reconcile is null then '{}'
          else jsonb_build_object('reconcile', d.settings -> 'reconcile' || jsonb_build_object('url', n.reconcile)) end,
      secrets = n.secrets, previous_secrets = n.previous, lookup_hash = n.lookup
    from rows from (unnest($1::uuid[]), unnest($2::text[]), unnest($3::jsonb[]), unnest($4::jsonb[]), unnest($5::bytea[]),
        unnest($6::text[]), unnest($7::jsonb[]), unnest($8::jsonb[]), unnest($9::text[]), unnest($10::text[]), unnest($11::text[]),
        unnest($12::text[]))
      n(id, headers, secrets, previous, lookup, old_headers, old_secrets, old_previous, url, reconcile, old_url, old_reconcile)
    where d.id = n.id and d.secrets = n.old_secrets and d.previous_secrets = n.old_previous
      and d.settings ->> 'headers' is not distinct from n.old_headers
      and d.settings ->> 'url' is not distinct from n.old_url and d.settings #>> '{reconcile,url}' is not distinct from n.old_reconcile and d.removed_at is null
    returning d.id`

const ROWS_MAX = 500

export interface Rekeyed {
  readonly values: number
  readonly destinations: number
}

export const rekey = (
  newest: SealingKey,
  older: ReadonlyArray<SealingKey>,
  progress: (done: number, total: number) => Effect.Effect<void>
): Effect.Effect<Rekeyed, Effect.Error<FromStore<void>> | EncryptionCheck.WrongEncryptionKey, Postgres> =>
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    yield* EncryptionCheck.check(newest, older)
    const { seal, open, isNewest } = sealing(newest, older)
    let values = 0
    let destinations = 0

    const anew = (text: string, belongsTo: string): string => {
      const sealed = Buffer.from(text, "base64")
      return isNewest(sealed) ? text : seal(open(sealed, belongsTo), belongsTo).toString("base64")
    }
    /** Parameters that were stored before they were sealed are sealed. */
    const urlAnew = (url: string | null, belongsTo: string): string | null => {
      if (url === null) return null
      const sealed = sealedIn(url)
      return sealed === null
        ? urlSealed(url, (text) => seal(Redacted.make(text), belongsTo).toString("base64"))
        : url.replace(sealed, () => anew(sealed, belongsTo))
    }
    /** Null when the newest key has sealed all of it. */
    const rowAnew = (row: Row) => {
      const { id, orgId, channel } = row
      const headers = row.headers === null ? null : anew(row.headers, headersOf(orgId, id))
      const url = urlAnew(row.url, parametersOf(orgId, id, "url"))
      const reconcile = urlAnew(row.reconcile, parametersOf(orgId, id, "reconcile"))
      const secrets = Object.fromEntries(
        Object.entries(row.secrets).map(([name, text]) => [name, anew(text, secretOf(orgId, id, name))])
      )
      const previous = row.previous.map((one) => ({ ...one, sealed: anew(one.sealed, secretOf(orgId, id, one.name)) }))
      const changed = [
        headers !== row.headers,
        url !== row.url,
        reconcile !== row.reconcile,
        ...Object.entries(secrets).map(([name, text]) => text !== row.secrets[name]),
        ...previous.map(({ sealed }, index) => sealed !== row.previous[index]!.sealed)
      ].filter((one) => one).length
      if (changed === 0) return null
      // What it is looked up by is one of its secrets.
      const by = Object.entries(row.secrets)
        .map(([name, text]) => open(Buffer.from(text, "base64"), secretOf(orgId, id, name)))
        .find((secret) => older.some((key) => row.lookup?.equals(lookupHash(key, channel, secret))))
      const lookup = by === undefined ? row.lookup : lookupHash(newest, channel, by)
      return { row, headers, url, reconcile, secrets, previous, lookup, changed }
    }

    const [{ count: total } = { count: 0 }] = yield* unavailable(reads.query<{ count: number }>(countStatement, []))
    let after: string | null = null
    let done = 0
    for (;;) {
      const rows: ReadonlyArray<Row> = yield* unavailable(reads.query<Row>(rowsStatement, [after, ROWS_MAX]))
      const stale = rows.flatMap((row) => rowAnew(row) ?? [])
      if (stale.length > 0) {
        const written = yield* unavailable(
          durable.query<{ id: string }>(writeStatement, [
            stale.map(({ row }) => row.id),
            stale.map(({ headers }) => headers),
            stale.map(({ secrets }) => JSON.stringify(secrets)),
            stale.map(({ previous }) => JSON.stringify(previous)),
            stale.map(({ lookup }) => lookup),
            stale.map(({ row }) => row.headers),
            stale.map(({ row }) => JSON.stringify(row.secrets)),
            stale.map(({ row }) => JSON.stringify(row.previous)),
            stale.map(({ url }) => url),
            stale.map(({ reconcile }) => reconcile),
            stale.map(({ row }) => row.url),
            stale.map(({ row }) => row.reconcile)
          ])
        )
        const ids = new Set(written.map(({ id }) => id))
        for (const { row, changed } of stale) {
          if (!ids.has(row.id)) continue
          values += changed
          destinations += 1
        }
        // Changed meanwhile: read once more.
        if (ids.size < stale.length) continue
      }
      done += rows.length
      yield* progress(done, Math.max(total, done))
      if (rows.length < ROWS_MAX) break
      after = rows.at(-1)!.id
    }
    // Last: until then a start without the older keys is refused.
    yield* EncryptionCheck.sealAnew(newest, older)
    return { values, destinations }
  })
