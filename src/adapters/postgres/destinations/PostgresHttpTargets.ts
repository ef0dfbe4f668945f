/**
 * HTTP targets in PostgreSQL; secrets sealed (see sealing.ts). `calling` is asked several times per attempt
 * and answers from memory for up to a second.
 */
import { randomUUID } from "node:crypto"
import { Cache, DateTime, Duration, Effect, Exit, Layer, type Redacted } from "effect"
import {
  type Calling,
  type HttpTarget,
  type HttpTargetSettings,
  HttpTargets,
  type Secrets
} from "../../../application/ports/HttpTargets.ts"
import { changesOf, journalOf } from "../../../domain/destination/changes.ts"
import { type DestinationId, isUuid, type OrgId } from "../../../domain/ids.ts"
import type { OnDeadLetter } from "../../../domain/message/queueChange.ts"
import { Postgres, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"
import { sealing } from "./sealing.ts"

interface TargetRow {
  readonly id: string
  readonly org_id: string
  readonly version: number
  /** Those from before there was a choice lack `onDeadLetter` and `bodyFields`. */
  readonly settings: Omit<HttpTargetSettings, "onDeadLetter" | "bodyFields"> & {
    readonly onDeadLetter?: OnDeadLetter
    readonly bodyFields?: HttpTargetSettings["bodyFields"]
  }
  /** Sealed, in base64. */
  readonly secrets: Readonly<Record<string, string>>
  readonly created_at: Date
  readonly updated_at: Date
}

const columns = "id, org_id, version, settings, secrets, created_at, updated_at"
const createStatement = {
  name: "create_http_target",
  text: `with target as (
      insert into http_target (id, org_id, version, settings, secrets, created_at, updated_at)
      values ($1, $2, 1, $3, $4, $5, $5) returning ${columns}
    )
    select target.*, ${appendToJournalSql(6)} from target`
}
const getStatement = {
  name: "get_http_target",
  text: `select ${columns} from http_target where org_id = $1 and id = $2 and removed_at is null`
}
const listStatement = {
  name: "list_http_targets",
  text: `select ${columns} from http_target
    where org_id = $1 and removed_at is null and ($2::uuid is null or id > $2) order by id limit $3`
}
const updateStatement = {
  name: "update_http_target",
  text: `with target as (
      update http_target
      set settings = settings || $3, secrets = (secrets || $4) - $5::text[], version = version + 1, updated_at = $6
      where org_id = $1 and id = $2 and removed_at is null returning ${columns}
    )
    select target.*, ${appendToJournalSql(7)} from target`
}
const removeStatement = {
  name: "remove_http_target",
  text: `with target as (
      update http_target set removed_at = $3, secrets = '{}'
      where org_id = $1 and id = $2 and removed_at is null returning id
    )
    select target.id, ${appendToJournalSql(4)} from target`
}

const channel = "http"

const CALLING_FRESH = Duration.seconds(1)
const CALLING_KEPT = 10_000

export const layer = (encryptionKey: Redacted.Redacted<Uint8Array>) =>
  Layer.effect(
    HttpTargets,
    Effect.gen(function* () {
      const { durable, reads } = yield* Postgres
      const { seal, open } = sealing(encryptionKey)
      const belongsTo = (orgId: string, id: string, name: string) => `http_target_secret:${orgId}:${id}:${name}`

      /** As the JSON text to store. */
      const sealed = (orgId: string, id: string, secrets: Secrets): string =>
        JSON.stringify(mapped(secrets, (secret, name) => seal(secret, belongsTo(orgId, id, name)).toString("base64")))

      const create = Effect.fnUntraced(function* (orgId: OrgId, settings: HttpTargetSettings, secrets: Secrets) {
        const id = randomUUID()
        const now = yield* DateTime.now
        const values = [id, orgId, JSON.stringify(settings), sealed(orgId, id, secrets), DateTime.formatIso(now)]
        const facts = yield* configurationFactValues(
          journalOf(channel, id),
          [{ type: "DestinationCreated", orgId, channel }],
          now
        )
        const rows = yield* unavailable(durable.query<TargetRow>(createStatement, [...values, ...facts]))
        return targetOf(rows[0]!)
      })

      const read = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
        if (!isUuid(id)) return null
        return (yield* unavailable(reads.query<TargetRow>(getStatement, [orgId, id])))[0] ?? null
      })

      const list = Effect.fnUntraced(function* (
        orgId: OrgId,
        page: { readonly cursor: string | null; readonly limit: number }
      ) {
        const rows = yield* unavailable(reads.query<TargetRow>(listStatement, [orgId, page.cursor, page.limit + 1]))
        const items = rows.slice(0, page.limit).map(targetOf)
        return { items, nextCursor: rows.length > page.limit ? items.at(-1)!.id : null }
      })

      const update = Effect.fnUntraced(function* (
        orgId: OrgId,
        id: DestinationId,
        change: Partial<HttpTargetSettings>,
        secrets: Readonly<Record<string, Redacted.Redacted | null>>
      ) {
        if (!isUuid(id)) return null
        const now = yield* DateTime.now
        const given: Record<string, Redacted.Redacted> = {}
        const gone: Array<string> = []
        for (const [name, secret] of Object.entries(secrets)) {
          if (secret === null) gone.push(name)
          else given[name] = secret
        }
        const set = [JSON.stringify(change), sealed(orgId, id, given), gone, DateTime.formatIso(now)]
        const facts = yield* configurationFactValues(
          journalOf(channel, id),
          changesOf({ orgId, channel }, change, secrets),
          now
        )
        const rows = yield* unavailable(durable.query<TargetRow>(updateStatement, [orgId, id, ...set, ...facts]))
        yield* forget(orgId, id)
        return rows[0] === undefined ? null : targetOf(rows[0])
      })

      const remove = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
        if (!isUuid(id)) return false
        const now = yield* DateTime.now
        const facts = yield* configurationFactValues(
          journalOf(channel, id),
          [{ type: "DestinationRemoved", orgId, channel }],
          now
        )
        const rows = yield* unavailable(
          durable.query<{ id: string }>(removeStatement, [orgId, id, DateTime.formatIso(now), ...facts])
        )
        yield* forget(orgId, id)
        return rows.length > 0
      })

      const readCalling = (orgId: OrgId, id: DestinationId) =>
        Effect.map(read(orgId, id), (row): Calling | null =>
          row === null
            ? null
            : {
                target: targetOf(row),
                secrets: mapped(row.secrets, (text, name) =>
                  open(Buffer.from(text, "base64"), belongsTo(orgId, id, name))
                )
              }
        )

      // Many actors of one target ask at once; one of them reads, and a failure is asked again at once.
      const callingCache = yield* Cache.makeWith(
        (key: string) => {
          const [orgId, id] = key.split("/")
          return readCalling(orgId as OrgId, id as DestinationId)
        },
        {
          capacity: CALLING_KEPT,
          timeToLive: (exit) => (Exit.isSuccess(exit) ? CALLING_FRESH : Duration.zero)
        }
      )
      const calling = (orgId: OrgId, id: DestinationId) => Cache.get(callingCache, `${orgId}/${id}`)
      const forget = (orgId: OrgId, id: DestinationId) => Cache.invalidate(callingCache, `${orgId}/${id}`)

      const get = (orgId: OrgId, id: DestinationId) =>
        Effect.map(read(orgId, id), (row) => (row === null ? null : targetOf(row)))

      return HttpTargets.of({ create, get, list, update, remove, calling })
    })
  )

const mapped = <A, B>(record: Readonly<Record<string, A>>, make: (value: A, name: string) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, make(value, name)]))

const targetOf = (row: TargetRow): HttpTarget => ({
  ...row.settings,
  onDeadLetter: row.settings.onDeadLetter ?? "skip",
  bodyFields: row.settings.bodyFields ?? {},
  id: row.id as DestinationId,
  orgId: row.org_id as OrgId,
  secretNames: Object.keys(row.secrets).toSorted(),
  version: row.version,
  createdAt: DateTime.fromDateUnsafe(row.created_at),
  updatedAt: DateTime.fromDateUnsafe(row.updated_at)
})
