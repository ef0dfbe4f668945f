/**
 * WhatsApp accounts in PostgreSQL; secrets sealed (see sealing.ts). A trigger tells the account's lane what its
 * settings mean for it. What is asked for every message is answered from memory for up to a second.
 */
import { createHmac, randomUUID } from "node:crypto"
import { Cache, DateTime, Duration, Effect, Exit, Layer, Redacted } from "effect"
import {
  type WhatsAppAccount,
  type WhatsAppAccountSettings,
  WhatsAppAccounts,
  type WhatsAppSecrets
} from "../../../application/ports/WhatsAppAccounts.ts"
import { changesOf, journalOf, pauseOf } from "../../../domain/destination/changes.ts"
import { type DestinationId, isUuid, type OrgId } from "../../../domain/ids.ts"
import { Postgres, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"
import { WorkSignal } from "../WorkSignal.ts"
import { sealing } from "./sealing.ts"

type SecretName = keyof WhatsAppSecrets

interface AccountRow {
  readonly id: string
  readonly org_id: string
  readonly phone_number_id: string
  readonly version: number
  readonly paused: boolean
  readonly settings: WhatsAppAccountSettings
  /** Sealed, in base64. */
  readonly secrets: Readonly<Record<SecretName, string>>
  readonly created_at: Date
  readonly updated_at: Date
}

const columns = "id, org_id, phone_number_id, version, paused, settings, secrets, created_at, updated_at"
const table = "whatsapp_account"
const living = "removed_at is null"
const createStatement = {
  name: "create_whatsapp_account",
  text: `with account as (
      insert into ${table}
        (id, org_id, phone_number_id, version, settings, secrets, verify_token_hash, created_at, updated_at)
      values ($1, $2, $3, 1, $4, $5, $6, $7, $7)
      on conflict (phone_number_id) where ${living} do nothing returning ${columns}
    )
    select account.*, ${appendToJournalSql(8)} from account`
}
const getStatement = {
  name: "get_whatsapp_account",
  text: `select ${columns} from ${table} where org_id = $1 and id = $2 and ${living}`
}
const listStatement = {
  name: "list_whatsapp_accounts",
  text: `select ${columns} from ${table}
    where org_id = $1 and ${living} and ($2::uuid is null or id > $2) order by id limit $3`
}
const updateStatement = {
  name: "update_whatsapp_account",
  text: `with account as (
      update ${table}
      set settings = settings || $3, secrets = secrets || $4, verify_token_hash = coalesce($5, verify_token_hash),
        version = version + 1, updated_at = $6
      where org_id = $1 and id = $2 and ${living} returning ${columns}
    )
    select account.*, ${appendToJournalSql(7)} from account`
}
const pauseStatement = {
  name: "pause_whatsapp_account",
  text: `with before as (
      select id, paused as was from ${table} where org_id = $1 and id = $2 and ${living} for update
    ), account as (
      update ${table} a set paused = $3, updated_at = case when was = $3 then updated_at else $4 end
      from before where a.id = before.id returning ${columns.replaceAll(/\w+/g, "a.$&")}, was
    )
    select account.*, case when was <> $3 then ${appendToJournalSql(5)} end from account`
}
const removeStatement = {
  name: "remove_whatsapp_account",
  text: `with account as (
      update ${table} set removed_at = $3, secrets = '{}', verify_token_hash = null
      where org_id = $1 and id = $2 and ${living} returning id
    )
    select account.id, ${appendToJournalSql(4)} from account`
}
const namedStatement = {
  name: "whatsapp_accounts_named",
  text: `select ${columns} from ${table}
    where org_id = $1 and ${living} and ($2::text is null or id::text = $2 or phone_number_id = $2) order by id limit 2`
}
const receivingStatement = {
  name: "whatsapp_account_of_number",
  text: `select ${columns} from ${table} where phone_number_id = $1 and ${living}`
}
const verifyTokenStatement = {
  name: "whatsapp_verify_token",
  text: `select 1 from ${table} where verify_token_hash = $1 and ${living} limit 1`
}
const unverifiedStatement = {
  name: "unverified_whatsapp_accounts",
  text: `select ${columns} from ${table} where settings @> '{"verifySignature": false}' and ${living} order by id`
}

const channel = "whatsapp"

const FRESH = Duration.millis(900)
const KEPT = 10_000

export const layer = (encryptionKey: Redacted.Redacted<Uint8Array>) =>
  Layer.effect(
    WhatsAppAccounts,
    Effect.gen(function* () {
      const { durable, reads } = yield* Postgres
      const signal = yield* WorkSignal
      const { seal, open } = sealing(encryptionKey)
      const belongsTo = (orgId: string, id: string, name: SecretName) =>
        `whatsapp_account_secret:${orgId}:${id}:${name}`

      /** As the JSON text to store. */
      const sealed = (orgId: string, id: string, secrets: Partial<WhatsAppSecrets>): string =>
        JSON.stringify(
          Object.fromEntries(
            Object.entries(secrets).map(([name, secret]) => [
              name,
              seal(secret, belongsTo(orgId, id, name as SecretName)).toString("base64")
            ])
          )
        )
      const opened = (row: AccountRow, name: SecretName) =>
        open(Buffer.from(row.secrets[name], "base64"), belongsTo(row.org_id, row.id, name))
      const hashOf = (verifyToken: Redacted.Redacted) =>
        createHmac("sha256", Redacted.value(encryptionKey))
          .update(`whatsapp_verify_token:${Redacted.value(verifyToken)}`)
          .digest()

      const create = Effect.fnUntraced(function* (
        orgId: OrgId,
        phoneNumberId: string,
        settings: WhatsAppAccountSettings,
        secrets: WhatsAppSecrets
      ) {
        const id = randomUUID()
        const now = yield* DateTime.now
        const rows = yield* unavailable(
          durable.query<AccountRow>(createStatement, [
            id,
            orgId,
            phoneNumberId,
            JSON.stringify(settings),
            sealed(orgId, id, secrets),
            hashOf(secrets.verifyToken),
            DateTime.formatIso(now),
            ...(yield* configurationFactValues(
              journalOf(channel, id),
              [{ type: "DestinationCreated", orgId, channel }],
              now
            ))
          ])
        )
        yield* forgetAll
        return rows[0] === undefined ? ("NumberTaken" as const) : accountOf(rows[0])
      })

      const read = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
        if (!isUuid(id)) return null
        return (yield* unavailable(reads.query<AccountRow>(getStatement, [orgId, id])))[0] ?? null
      })

      const list = Effect.fnUntraced(function* (
        orgId: OrgId,
        page: { readonly cursor: string | null; readonly limit: number }
      ) {
        const rows = yield* unavailable(reads.query<AccountRow>(listStatement, [orgId, page.cursor, page.limit + 1]))
        const items = rows.slice(0, page.limit).map(accountOf)
        return { items, nextCursor: rows.length > page.limit ? items.at(-1)!.id : null }
      })

      /** What a change to one account leaves of it; lanes and caches are told. */
      const changed = Effect.fnUntraced(function* (id: DestinationId, query: Parameters<typeof durable.query>) {
        const rows = isUuid(id) ? yield* unavailable(durable.query<AccountRow>(...query)) : []
        yield* forgetAll
        yield* signal.changed
        return rows[0] === undefined ? null : accountOf(rows[0])
      })

      const update = Effect.fnUntraced(function* (
        orgId: OrgId,
        id: DestinationId,
        change: Partial<WhatsAppAccountSettings>,
        secrets: Partial<WhatsAppSecrets>
      ) {
        const now = yield* DateTime.now
        const hash = secrets.verifyToken === undefined ? null : hashOf(secrets.verifyToken)
        const set = [JSON.stringify(change), sealed(orgId, id, secrets), hash, DateTime.formatIso(now)]
        const facts = yield* configurationFactValues(
          journalOf(channel, id),
          changesOf({ orgId, channel }, change, secrets),
          now
        )
        return yield* changed(id, [updateStatement, [orgId, id, ...set, ...facts]])
      })

      const setPaused = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId, paused: boolean) {
        const now = yield* DateTime.now
        const facts = yield* configurationFactValues(journalOf(channel, id), [pauseOf({ orgId, channel }, paused)], now)
        return yield* changed(id, [pauseStatement, [orgId, id, paused, DateTime.formatIso(now), ...facts]])
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
        yield* forgetAll
        yield* signal.changed
        return rows.length > 0
      })

      const readCalling = (orgId: OrgId, id: DestinationId) =>
        Effect.map(read(orgId, id), (row) =>
          row === null ? null : { account: accountOf(row), accessToken: opened(row, "accessToken") }
        )

      const readNamed = (orgId: OrgId, from: string | null) =>
        Effect.map(unavailable(reads.query<AccountRow>(namedStatement, [orgId, from])), (rows) => rows.map(accountOf))

      const readReceiving = (phoneNumberId: string) =>
        Effect.map(unavailable(reads.query<AccountRow>(receivingStatement, [phoneNumberId])), ([row]) =>
          row === undefined ? null : { account: accountOf(row), appSecret: opened(row, "appSecret") }
        )

      // Many ask for the same at once; one of them reads, and a failure is asked again at once.
      const remembered = <A, E>(read: (key: string) => Effect.Effect<A, E>) =>
        Cache.makeWith(read, {
          capacity: KEPT,
          timeToLive: (exit) => (Exit.isSuccess(exit) ? FRESH : Duration.zero)
        })
      const callings = yield* remembered((key) => readCalling(...(key.split("/") as [OrgId, DestinationId])))
      const names = yield* remembered((key) => readNamed(...(JSON.parse(key) as [OrgId, string | null])))
      const receivers = yield* remembered(readReceiving)
      // Changes are rare, and each may show in all three.
      const forgetAll = Effect.suspend(() =>
        Effect.all([Cache.invalidateAll(callings), Cache.invalidateAll(names), Cache.invalidateAll(receivers)])
      )

      return WhatsAppAccounts.of({
        create,
        get: (orgId, id) => Effect.map(read(orgId, id), (row) => (row === null ? null : accountOf(row))),
        list,
        update,
        setPaused,
        remove,
        named: (orgId, from) => Cache.get(names, JSON.stringify([orgId, from])),
        calling: (orgId, id) => Cache.get(callings, `${orgId}/${id}`),
        receiving: (phoneNumberId) => Cache.get(receivers, phoneNumberId),
        knowsVerifyToken: (verifyToken) =>
          Effect.map(unavailable(reads.query(verifyTokenStatement, [hashOf(verifyToken)])), (rows) => rows.length > 0),
        unverified: Effect.map(unavailable(reads.query<AccountRow>(unverifiedStatement, [])), (rows) =>
          rows.map(accountOf)
        )
      })
    })
  )

const accountOf = (row: AccountRow): WhatsAppAccount => ({
  ...row.settings,
  id: row.id as DestinationId,
  orgId: row.org_id as OrgId,
  phoneNumberId: row.phone_number_id,
  paused: row.paused,
  version: row.version,
  createdAt: DateTime.fromDateUnsafe(row.created_at),
  updatedAt: DateTime.fromDateUnsafe(row.updated_at)
})
