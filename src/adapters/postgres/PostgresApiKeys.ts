import { randomUUID } from "node:crypto"
import { Clock, DateTime, Effect, Layer } from "effect"
import { type ApiKey, ApiKeys } from "../../application/ports/ApiKeys.ts"
import { isUuid, type OrgId } from "../../domain/ids.ts"
import { Postgres, unavailable } from "./Postgres.ts"

interface KeyRow {
  readonly id: string
  readonly org_id: string
  readonly name: string
  readonly created_at: Date
}

const createStatement = {
  name: "create_key",
  text: `insert into posthaste.api_key (id, org_id, name, key_hash, created_at) values ($1, $2, $3, $4, $5)
    returning id, org_id, name, created_at`
}
const orgStatement = {
  name: "org_of_key",
  text: "select org_id from posthaste.api_key where key_hash = $1 and revoked_at is null"
}
const listStatement = {
  name: "list_keys",
  text: `select id, org_id, name, created_at from posthaste.api_key
    where revoked_at is null and ($1::text is null or org_id = $1) order by created_at, id`
}
const revokeStatement = {
  name: "revoke_key",
  text: "update posthaste.api_key set revoked_at = $2 where id = $1 and revoked_at is null returning id"
}

/** Shorter than the second within which a revoked key must be refused everywhere. */
const FRESH_MS = 900
const KEPT = 10_000

/** Keys by the hash of their text. Every request asks, so answers are remembered for a moment; refusals are not. */
export const layer = Layer.effect(
  ApiKeys,
  Effect.gen(function* () {
    const { durable, reads } = yield* Postgres
    const known = new Map<string, { readonly until: number; readonly orgId: OrgId }>()

    const create = Effect.fnUntraced(function* (orgId: OrgId, name: string, keyHash: string) {
      const now = DateTime.formatIso(yield* DateTime.now)
      const rows = yield* unavailable(durable.query<KeyRow>(createStatement, [randomUUID(), orgId, name, keyHash, now]))
      return keyOf(rows[0]!)
    })

    const orgOf = Effect.fnUntraced(function* (keyHash: string) {
      const now = yield* Clock.currentTimeMillis
      const remembered = known.get(keyHash)
      if (remembered !== undefined && now < remembered.until && remembered.until - now <= FRESH_MS) {
        return remembered.orgId
      }
      const rows = yield* unavailable(reads.query<{ org_id: string }>(orgStatement, [keyHash]))
      const orgId = rows[0]?.org_id as OrgId | undefined
      if (known.size >= KEPT) known.clear()
      if (orgId === undefined) known.delete(keyHash)
      else known.set(keyHash, { until: now + FRESH_MS, orgId })
      return orgId ?? null
    })

    const list = (orgId: OrgId | null) =>
      unavailable(reads.query<KeyRow>(listStatement, [orgId])).pipe(Effect.map((rows) => rows.map(keyOf)))

    const revoke = Effect.fnUntraced(function* (id: string) {
      if (!isUuid(id)) return false
      const now = DateTime.formatIso(yield* DateTime.now)
      const rows = yield* unavailable(durable.query<{ id: string }>(revokeStatement, [id, now]))
      known.clear()
      return rows.length > 0
    })

    return ApiKeys.of({ create, orgOf, list, revoke })
  })
)

const keyOf = (row: KeyRow): ApiKey => ({
  id: row.id,
  orgId: row.org_id as OrgId,
  name: row.name,
  createdAt: DateTime.fromDateUnsafe(row.created_at)
})
