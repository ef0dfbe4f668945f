import { randomUUID } from "node:crypto"
import { Clock, DateTime, Effect, Layer } from "effect"
import { type ApiKey, ApiKeys, type Holder } from "../../../application/ports/ApiKeys.ts"
import { journalOfKey } from "../../../domain/destination/changes.ts"
import { isUuid, type OrgId } from "../../../domain/ids.ts"
import { Postgres, prepared, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"

const createStatement = prepared`with key as (
      insert into api_key (id, org_id, name, key_hash, created_at) values ($1, $2, $3, $4, $5) returning 1
    )
    select ${appendToJournalSql(6)} from key`
const holderStatement = prepared`select id, org_id as "orgId" from api_key where key_hash = $1 and revoked_at is null`
const listStatement = prepared`select id, org_id as "orgId", name, created_at as "createdAt" from api_key
    where revoked_at is null and ($1::text is null or org_id = $1) order by created_at, id`
const ownerStatement = prepared`select org_id as "orgId" from api_key where id = $1`
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
    const { durable, lookups, reads } = yield* Postgres
    const known = new Map<string, { readonly until: number; readonly holder: Holder }>()

    const create = Effect.fnUntraced(function* (orgId: OrgId, name: string, keyHash: string) {
      const id = randomUUID()
      const now = yield* DateTime.now
      const facts = yield* configurationFactValues(journalOfKey(id), [{ type: "KeyCreated", orgId, name }], now)
      const values = [id, orgId, name, keyHash, DateTime.formatIso(now), ...facts]
      yield* unavailable(durable.query(createStatement, values))
      return { id, orgId, name, createdAt: now }
    })

    const holderOf = Effect.fnUntraced(function* (keyHash: string) {
      const now = yield* Clock.currentTimeMillis
      const remembered = known.get(keyHash)
      if (remembered !== undefined && now < remembered.until && remembered.until - now <= FRESH_MS) {
        return remembered.holder
      }
      const [holder = null] = yield* unavailable(lookups.query<Holder>(holderStatement, [keyHash]))
      if (known.size >= KEPT) known.clear()
      if (holder === null) known.delete(keyHash)
      else known.set(keyHash, { until: now + FRESH_MS, holder })
      return holder
    })

    const list = (orgId: OrgId | null) => unavailable(reads.query<ApiKey>(listStatement, [orgId]))

    const revoke = Effect.fnUntraced(function* (id: string) {
      if (!isUuid(id)) return false
      const [owner] = yield* unavailable(lookups.query<Pick<ApiKey, "orgId">>(ownerStatement, [id]))
      if (owner === undefined) return false
      const { orgId } = owner
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
