import { randomUUID } from "node:crypto"
import { Clock, DateTime, Effect, Layer } from "effect"
import { type ApiKey, ApiKeys, type Holder } from "../../../application/ports/ApiKeys.ts"
import { journalOfKey } from "../../../domain/destination/changes.ts"
import { isUuid, type OrgId } from "../../../domain/ids.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"

interface KeyRow {
  readonly id: string
  readonly org_id: string
  readonly name: string
  readonly created_at: Date
}

const createStatement = prepared`with key as (
      insert into api_key (id, org_id, name, key_hash, created_at) values ($1, $2, $3, $4, $5)
      returning id, org_id, name, created_at
    )
    select key.*, ${appendToJournalSql(6)} from key`
const holderStatement = prepared`select id, org_id from api_key where key_hash = $1 and revoked_at is null`
const listStatement = prepared`select id, org_id, name, created_at from api_key
    where revoked_at is null and ($1::text is null or org_id = $1) order by created_at, id`
const ownerStatement = prepared`select org_id from api_key where id = $1`
const revokeStatement = prepared`with key as (
      update api_key set revoked_at = $3 where id = $1 and org_id = $2 and revoked_at is null returning id
    )
    select key.id, ${appendToJournalSql(4)} from key`

/** Shorter than the second within which a revoked key must be refused everywhere. */
const FRESH_MS = 900
const KEPT = 10_000

/** Keys by the hash of their text. Every request asks, so answers are remembered for a moment; refusals are not. */
export const layer = Layer.effect(
  ApiKeys,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    const known = new Map<string, { readonly until: number; readonly holder: Holder }>()

    const create = Effect.fnUntraced(function* (orgId: OrgId, name: string, keyHash: string) {
      const id = randomUUID()
      const now = yield* DateTime.now
      const facts = yield* configurationFactValues(journalOfKey(id), [{ type: "KeyCreated", orgId, name }], now)
      const values = [id, orgId, name, keyHash, DateTime.formatIso(now), ...facts]
      const rows = yield* unavailable(durable.query<KeyRow>(createStatement, values))
      return keyOf(rows[0]!)
    })

    const holderOf = Effect.fnUntraced(function* (keyHash: string) {
      const now = yield* Clock.currentTimeMillis
      const remembered = known.get(keyHash)
      if (remembered !== undefined && now < remembered.until && remembered.until - now <= FRESH_MS) {
        return remembered.holder
      }
      const [row] = yield* unavailable(reads.query<Pick<KeyRow, "id" | "org_id">>(holderStatement, [keyHash]))
      const holder = row === undefined ? null : { id: row.id, orgId: row.org_id as OrgId }
      if (known.size >= KEPT) known.clear()
      if (holder === null) known.delete(keyHash)
      else known.set(keyHash, { until: now + FRESH_MS, holder })
      return holder
    })

    const list = (orgId: OrgId | null) =>
      reading(reads.query<KeyRow>(listStatement, [orgId]), (rows) => rows.map(keyOf))

    const revoke = Effect.fnUntraced(function* (id: string) {
      if (!isUuid(id)) return false
      const [owner] = yield* unavailable(reads.query<Pick<KeyRow, "org_id">>(ownerStatement, [id]))
      if (owner === undefined) return false
      const orgId = owner.org_id as OrgId
      const now = yield* DateTime.now
      const facts = yield* configurationFactValues(journalOfKey(id), [{ type: "KeyRevoked", orgId }], now)
      const values = [id, orgId, DateTime.formatIso(now), ...facts]
      const rows = yield* unavailable(durable.query<{ id: string }>(revokeStatement, values))
      known.clear()
      return rows.length > 0
    })

    return ApiKeys.of({ create, holderOf, list, revoke })
  })
)

const keyOf = (row: KeyRow): ApiKey => ({
  id: row.id,
  orgId: row.org_id as OrgId,
  name: row.name,
  createdAt: DateTime.fromDateUnsafe(row.created_at)
})
