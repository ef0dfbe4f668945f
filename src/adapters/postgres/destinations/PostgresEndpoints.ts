/**
 * Webhook endpoints in PostgreSQL, secrets and header values sealed (see sealing.ts). A trigger tells the
 * endpoint's lane what its settings mean for it. `signing` is asked once per attempt and answers from memory
 * for up to a second.
 */
import { randomUUID } from "node:crypto"
import { Cache, DateTime, Duration, Effect, Exit, Layer, Redacted } from "effect"
import { type Endpoint, type EndpointSettings, Endpoints } from "../../../application/ports/Endpoints.ts"
import { changesOf, journalOf, pauseOf } from "../../../domain/destination/changes.ts"
import { type DestinationId, isUuid, type OrgId } from "../../../domain/ids.ts"
import type { OnDeadLetter } from "../../../domain/message/queueChange.ts"
import { Postgres, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"
import { WorkSignal } from "../WorkSignal.ts"
import { sealing } from "./sealing.ts"

/** Header values often are credentials, so all of them are sealed together. */
type StoredSettings = Omit<EndpointSettings, "headers" | "onDeadLetter"> & {
  readonly headers: string
  /** Absent in settings from before there was a choice. */
  readonly onDeadLetter?: OnDeadLetter
}

interface EndpointRow {
  readonly id: string
  readonly org_id: string
  readonly version: number
  readonly paused: boolean
  readonly settings: StoredSettings
  readonly created_at: Date
  readonly updated_at: Date
}

const columns = "id, org_id, version, paused, settings, created_at, updated_at"
const ofRow = (row: string) => columns.replaceAll(/\w+/g, `${row}.$&`)
const createStatement = {
  name: "create_endpoint",
  text: `with endpoint as (
      insert into endpoint (id, org_id, version, settings, created_at, updated_at)
      values ($1, $2, 1, $3, $4, $4) returning ${columns}
    ), secret as (
      insert into endpoint_secret (endpoint_id, number, sealed, created_at) values ($1, 1, $5, $4)
    )
    select endpoint.*, ${appendToJournalSql(6)} from endpoint`
}
const getStatement = {
  name: "get_endpoint",
  text: `select ${columns} from endpoint where org_id = $1 and id = $2 and removed_at is null`
}
const listStatement = {
  name: "list_endpoints",
  text: `select ${columns} from endpoint
    where org_id = $1 and removed_at is null and ($2::uuid is null or id > $2) order by id limit $3`
}
const updateStatement = {
  name: "update_endpoint",
  text: `with endpoint as (
      update endpoint set settings = settings || $3, version = version + 1, updated_at = $4
      where org_id = $1 and id = $2 and removed_at is null returning ${columns}
    )
    select endpoint.*, ${appendToJournalSql(5)} from endpoint`
}
const pauseStatement = {
  name: "pause_endpoint",
  text: `with before as (
      select id, paused as was from endpoint where org_id = $1 and id = $2 and removed_at is null for update
    ), endpoint as (
      update endpoint e set paused = $3, updated_at = case when was = $3 then updated_at else $4 end
      from before where e.id = before.id returning ${ofRow("e")}, was
    )
    select endpoint.*, case when was <> $3 then ${appendToJournalSql(5)} end from endpoint`
}
const removeStatement = {
  name: "remove_endpoint",
  text: `with endpoint as (
      update endpoint set removed_at = $3 where org_id = $1 and id = $2 and removed_at is null returning id
    )
    select endpoint.id, ${appendToJournalSql(4)} from endpoint`
}
const signingStatement = {
  name: "signing",
  text: `select ${ofRow("e")}, s.number, s.sealed
    from endpoint e
    join endpoint_secret s on s.endpoint_id = e.id and (s.retires_at is null or s.retires_at > clock_timestamp())
    where e.org_id = $1 and e.id = $2 and e.removed_at is null order by s.number desc`
}

const channel = "webhook"

const SIGNING_FRESH = Duration.millis(900)
const SIGNING_KEPT = 10_000

export const layer = (encryptionKey: Redacted.Redacted<Uint8Array>) =>
  Layer.effect(
    Endpoints,
    Effect.gen(function* () {
      const { durable, reads } = yield* Postgres
      const signal = yield* WorkSignal
      const { seal, open } = sealing(encryptionKey)
      const belongsTo = (orgId: string, id: string, number: number) => `endpoint_secret:${orgId}:${id}:${number}`
      const headersOf = (orgId: string, id: string) => `endpoint_headers:${orgId}:${id}`

      const stored = (orgId: string, id: string, settings: Partial<EndpointSettings>): Partial<StoredSettings> => {
        const { headers, ...rest } = settings
        if (headers === undefined) return rest
        const sealed = seal(Redacted.make(JSON.stringify(headers)), headersOf(orgId, id))
        return { ...rest, headers: sealed.toString("base64") }
      }
      const endpointOf = (row: EndpointRow): Endpoint => ({
        ...row.settings,
        onDeadLetter: row.settings.onDeadLetter ?? "skip",
        headers: JSON.parse(
          Redacted.value(open(Buffer.from(row.settings.headers, "base64"), headersOf(row.org_id, row.id)))
        ),
        id: row.id as DestinationId,
        orgId: row.org_id as OrgId,
        paused: row.paused,
        version: row.version,
        createdAt: DateTime.fromDateUnsafe(row.created_at),
        updatedAt: DateTime.fromDateUnsafe(row.updated_at)
      })

      const create = Effect.fnUntraced(function* (orgId: OrgId, settings: EndpointSettings, secret: Redacted.Redacted) {
        const id = randomUUID()
        const now = yield* DateTime.now
        const sealed = seal(secret, belongsTo(orgId, id, 1))
        const rows = yield* unavailable(
          durable.query<EndpointRow>(createStatement, [
            id,
            orgId,
            JSON.stringify(stored(orgId, id, settings)),
            DateTime.formatIso(now),
            sealed,
            ...(yield* configurationFactValues(
              journalOf(channel, id),
              [{ type: "DestinationCreated", orgId, channel }],
              now
            ))
          ])
        )
        return endpointOf(rows[0]!)
      })

      const get = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
        if (!isUuid(id)) return null
        const rows = yield* unavailable(reads.query<EndpointRow>(getStatement, [orgId, id]))
        return rows[0] === undefined ? null : endpointOf(rows[0])
      })

      const list = Effect.fnUntraced(function* (
        orgId: OrgId,
        page: { readonly cursor: string | null; readonly limit: number }
      ) {
        const rows = yield* unavailable(reads.query<EndpointRow>(listStatement, [orgId, page.cursor, page.limit + 1]))
        const items = rows.slice(0, page.limit).map(endpointOf)
        return { items, nextCursor: rows.length > page.limit ? items.at(-1)!.id : null }
      })

      const update = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId, change: Partial<EndpointSettings>) {
        if (!isUuid(id)) return null
        const now = yield* DateTime.now
        const rows = yield* unavailable(
          durable.query<EndpointRow>(updateStatement, [
            orgId,
            id,
            JSON.stringify(stored(orgId, id, change)),
            DateTime.formatIso(now),
            ...(yield* configurationFactValues(journalOf(channel, id), changesOf({ orgId, channel }, change), now))
          ])
        )
        yield* forget(orgId, id)
        yield* signal.changed
        return rows[0] === undefined ? null : endpointOf(rows[0])
      })

      const setPaused = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId, paused: boolean) {
        if (!isUuid(id)) return null
        const now = yield* DateTime.now
        const values = [orgId, id, paused, DateTime.formatIso(now)]
        const facts = yield* configurationFactValues(journalOf(channel, id), [pauseOf({ orgId, channel }, paused)], now)
        const rows = yield* unavailable(durable.query<EndpointRow>(pauseStatement, [...values, ...facts]))
        yield* forget(orgId, id)
        yield* signal.changed
        return rows[0] === undefined ? null : endpointOf(rows[0])
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
        yield* signal.changed
        return rows.length > 0
      })

      const readSigning = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
        const rows = yield* unavailable(
          reads.query<EndpointRow & { readonly number: number; readonly sealed: Buffer }>(signingStatement, [orgId, id])
        )
        return rows[0] === undefined
          ? null
          : {
              endpoint: endpointOf(rows[0]),
              secrets: rows.map(({ number, sealed }) => open(sealed, belongsTo(orgId, id, number)))
            }
      })

      // Many actors of one destination ask at once; one of them reads, and a failure is asked again at once.
      const signingCache = yield* Cache.makeWith(
        (key: string) => {
          const [orgId, id] = key.split("/")
          return readSigning(orgId as OrgId, id as DestinationId)
        },
        {
          capacity: SIGNING_KEPT,
          timeToLive: (exit) => (Exit.isSuccess(exit) ? SIGNING_FRESH : Duration.zero)
        }
      )
      const signing = (orgId: OrgId, id: DestinationId) => Cache.get(signingCache, `${orgId}/${id}`)
      const forget = (orgId: OrgId, id: DestinationId) => Cache.invalidate(signingCache, `${orgId}/${id}`)

      return Endpoints.of({ create, get, list, update, setPaused, remove, signing })
    })
  )
