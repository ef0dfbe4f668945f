import { randomUUID } from "node:crypto"
import { Clock, DateTime, Effect, Layer } from "effect"
import { type ApiKey, ApiKeys, type Holder, type KeyTerms } from "../../../application/ports/ApiKeys.ts"
import { journalOfKey } from "../../../domain/destination/changes.ts"
import { isUuid, type OrgId } from "../../../domain/ids.ts"
import { Postgres, prepared, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"

const createStatement = prepared`with key as (
      insert into api_key (id, org_id, name, scopes, expires_at, networks, limits, prefix, key_hash, created_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning 1
    )
    select ${appendToJournalSql(11)} from key`
const holderStatement = prepared`select id, org_id as "orgId", scopes, expires_at as "expiresAt", networks, limits,
      revoked_at is not null as revoked
    from api_key where key_hash = $1`
const livingStatement = prepared`select id from api_key
    where id = any($1::uuid[]) and revoked_at is null and (expires_at is null or expires_at > $2)`
const usedStatement = prepared`update api_key set last_used_at = u.at
    from unnest($1::uuid[], $2::timestamptz[]) u(id, at)
    where api_key.id = u.id and (api_key.last_used_at is null or api_key.last_used_at < u.at)`
const listStatement = prepared`select id, org_id as "orgId", name, scopes, expires_at as "expiresAt", networks, limits, prefix,
      created_at as "createdAt", last_used_at as "lastUsedAt"
    from api_key where revoked_at is null and ($1::text is null or org_id = $1) order by created_at, id`
const ownerStatement = prepared`select org_id as "orgId" from api_key where id = $1`
const revokeStatement = prepared`with key as (
      update api_key set revoked_at = $3 where id = $1 and org_id = $2 and revoked_at is null returning id
    )
    select key.id, ${appendToJournalSql(4)} from key`

/** Below the second within which a revoked key is refused everywhere. */
const FRESH_MS = 900
const KEPT = 10_000

const USES_EVERY = "1 minute"

/** Remembers keys for a moment, but no refusals. */
export const layer = Layer.effect(
  ApiKeys,
  Effect.gen(function* () {
    const { durable, lookups, reads } = yield* Postgres
    const known = new Map<string, { readonly until: number; readonly holder: Holder }>()

    const create = Effect.fnUntraced(function* (orgId: OrgId, terms: KeyTerms, keyHash: string) {
      const id = randomUUID()
      const now = yield* DateTime.now
      const { name, scopes, expiresAt, networks, limits, prefix } = terms
      const fact = { type: "KeyCreated", orgId, name, scopes, expiresAt, networks, limits } as const
      const facts = yield* configurationFactValues(journalOfKey(id), [fact], now)
      const until = expiresAt === null ? null : DateTime.formatIso(expiresAt)
      const values = [
        id,
        orgId,
        name,
        scopes,
        until,
        networks,
        limits,
        prefix,
        keyHash,
        DateTime.formatIso(now),
        ...facts
      ]
      yield* unavailable(durable.query(createStatement, values))
      return { id, orgId, ...terms, createdAt: now, lastUsedAt: null }
    })

    const uses = new Map<string, number>()
    const storeUses = Effect.gen(function* () {
      if (uses.size === 0) return
      const [ids, times] = [[...uses.keys()], [...uses.values()]]
      uses.clear()
      yield* unavailable(
        durable.query(usedStatement, [ids, times.map((time) => DateTime.formatIso(DateTime.makeUnsafe(time)))])
      )
    })
    // A failed write loses one minute.
    yield* Effect.ignore(storeUses).pipe(Effect.delay(USES_EVERY), Effect.forever, Effect.forkScoped)
    yield* Effect.addFinalizer(() => Effect.ignore(storeUses))

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

    const living = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const now = DateTime.formatIso(yield* DateTime.now)
      const rows = yield* unavailable(lookups.query<{ id: string }>(livingStatement, [ids, now]))
      return new Set(rows.map(({ id }) => id))
    })

    const revoke = Effect.fnUntraced(function* (id: string, whose: OrgId | null) {
      if (!isUuid(id)) return false
      const [owner] = yield* unavailable(lookups.query<Pick<ApiKey, "orgId">>(ownerStatement, [id]))
      if (owner === undefined || (whose !== null && owner.orgId !== whose)) return false
      const { orgId } = owner
      const now = yield* DateTime.now
      const facts = yield* configurationFactValues(journalOfKey(id), [{ type: "KeyRevoked", orgId }], now)
      const values = [id, orgId, DateTime.formatIso(now), ...facts]
      const rows = yield* unavailable(durable.query<{ id: string }>(revokeStatement, values))
      known.clear()
      return rows.length > 0
    })

    return ApiKeys.of({
      create,
      holderOf,
      used: (id) => Effect.map(Clock.currentTimeMillis, (now) => void uses.set(id, now)),
      living,
      list,
      revoke
    })
  })
)
