/**
 * Destinations of every kind: one row each, secrets and headers sealed (sealing.ts). A trigger copies settings to the lane. Reads for
 * sending are answered from memory for up to a second.
 */
import { randomUUID } from "node:crypto"
import { Cache, DateTime, Duration, Effect, Exit, Layer, Redacted } from "effect"
import {
  type Destination,
  type DestinationSettings,
  Destinations,
  type OpenDestination,
  PREVIOUS_MAX,
  type Secrets
} from "../../../application/ports/Destinations.ts"
import { Pulse } from "../../../application/ports/Pulse.ts"
import type { OldestDue } from "../../../domain/condition/decider.ts"
import {
  addressingOf,
  changesOf,
  creationOf,
  type DestinationKind,
  disablingOf,
  journalOf,
  pauseOf
} from "../../../domain/destination/changes.ts"
import type { ConfigurationFact } from "../../../domain/destination/facts.ts"
import type { ChannelName, OrgId } from "../../../domain/ids.ts"
import { isUuid } from "../../../domain/ids.ts"
import { boundedRows, type Looked, pageOfRows } from "../boundedPages.ts"
import type { Page } from "../filtering.ts"
import { groupCommit } from "../groupCommit.ts"
import { Postgres, prepared, reading, type Statement, unavailable } from "../Postgres.ts"
import { appendToJournalSql, configurationFactValues } from "../store/appendToJournal.ts"
import { headersOf, lookupHash, parametersOf, secretOf, urlOpened, urlSealed } from "./sealedValues.ts"
import { type SealingKey, sealing } from "./sealing.ts"

interface Row extends Omit<Destination, "settings" | "secretNames"> {
  /** Header values may be credentials: sealed together, in base64. */
  readonly settings: DestinationSettings & { readonly headers?: string }
  /** Sealed, in base64, by name. */
  readonly secrets: Readonly<Record<string, string>>
  /** Sealed like the secrets whose names they have; the newest first. */
  readonly previousSecrets: ReadonlyArray<{ readonly name: string; readonly sealed: string; readonly until: string }>
  readonly removed: boolean
}

const columns = `id, org_id as "orgId", channel, version, paused, settings, secrets, previous_secrets as "previousSecrets",
  published, alerting, disabled_reason as "disabledReason", enabled_at as "enabledAt", created_at as "createdAt", updated_at as "updatedAt", removed_at is not null as removed`
const table = "destination"
const living = "removed_at is null"
const own = `org_id = $1 and id = $2 and channel = $3 and ${living}`

/** SQL for the previous secrets of `rows` (name, sealed, until, n) that are good at `time`. */
const goodSecretsAt = (time: string, rows: string) =>
  `(select coalesce(jsonb_agg(jsonb_build_object('name', name, 'sealed', sealed, 'until', until) order by n), '[]')
    from (select * from (${rows}) each where until > ${time}::timestamptz order by n limit ${PREVIOUS_MAX}) good)`
const previousRows = `select e ->> 'name' as name, e ->> 'sealed' as sealed, (e ->> 'until')::timestamptz as until, n
      from jsonb_array_elements(previous_secrets) with ordinality as listed (e, n)`

const keptByChange = goodSecretsAt(
  "$9",
  `${previousRows} where not (e ->> 'name' = any ($6::text[]) or $5::jsonb ? (e ->> 'name'))`
)
// The replaced secret comes first, and no earlier one is good for longer.
const keptByRotation = goodSecretsAt(
  "$7",
  `select $4::text as name, secrets ->> $4::text as sealed, $6::timestamptz as until, 0 as n
      where secrets ? $4::text
      union all select name, sealed, least(until, $6::timestamptz), n from (${previousRows}) earlier`
)
const keptByRead = goodSecretsAt("$4", previousRows)

const createStatement = prepared`with changed as (
      insert into ${table} (id, org_id, channel, version, settings, secrets, public_key, lookup_hash, alerting, published, created_at, updated_at)
      values ($2, $1, $3, 1, $4, $5, $6, $7, $8, $9, $10, $10)
      on conflict (channel, public_key) where ${living} do nothing returning ${columns}
    )
    select changed.*, ${appendToJournalSql(11)} from changed`
const changeStatement = prepared`with changed as (
      update ${table} set settings = settings || $4, secrets = (secrets || $5::jsonb) - $6::text[],
        previous_secrets = ${keptByChange},
        lookup_hash = coalesce($7, lookup_hash), alerting = alerting || $8, version = version + 1, updated_at = $9
      where ${own} and ($10::int is null or version = $10) returning ${columns}
    )
    select changed.*, ${appendToJournalSql(11)} from changed`
const rotateStatement = prepared`with changed as (
      update ${table} set secrets = secrets || jsonb_build_object($4::text, $5::text),
        previous_secrets = ${keptByRotation}, published = published || $8::jsonb,
        version = version + 1, updated_at = $7
      where ${own} returning ${columns}
    )
    select changed.*, ${appendToJournalSql(9)} from changed`
const showStatement = prepared`with changed as (
      update ${table} set previous_secrets = ${keptByRead} where ${own} returning ${columns}
    )
    select changed.*, ${appendToJournalSql(5)} from changed`
const pauseStatement = prepared`with before as (
      select id as found, paused as was from ${table} where ${own} for update
    ), changed as (
      update ${table} set paused = $4, updated_at = case when was = $4 then updated_at else $5 end
      from before where id = found returning ${columns}, was
    )
    select changed.*, case when was <> $4 then ${appendToJournalSql(6)} end from changed`
const disableStatement = prepared`with before as (
      select id as found, disabled_reason as was from ${table} where ${own} for update
    ), changed as (
      update ${table} set disabled_reason = case when $4::text is null then null else coalesce(was, $4::text) end,
        enabled_at = case when $4::text is null and was is not null then $5 else enabled_at end,
        updated_at = case when (was is null) = ($4::text is null) then updated_at else $5 end
      from before where id = found returning ${columns}, was
    )
    select changed.*, case when (was is null) <> ($4::text is null) then ${appendToJournalSql(6)} end from changed`
const withoutParameters = `settings - 'headers' - case when settings #>> '{reconcile,url}' is null then '' else 'reconcile' end
  || case when settings ? 'url' then jsonb_build_object('url', split_part(settings ->> 'url', '?', 1)) else '{}' end`
const removeStatement = prepared`with changed as (
      update ${table} set removed_at = $4, settings = ${withoutParameters}, secrets = '{}', previous_secrets = '[]',
        lookup_hash = null
      where ${own} returning ${columns}
    )
    select changed.*, ${appendToJournalSql(5)} from changed`
const getStatement = prepared`select ${columns} from ${table} where org_id = $1 and id = $2 and ${living}`
const sendingStatement = prepared`select ${columns} from ${table} where id = any ($1::uuid[]) and ${living}`
const listed = (
  orgId: OrgId,
  { channel, alerting = false }: { readonly channel?: ChannelName; readonly alerting?: boolean },
  page: Page
) => {
  const values: Array<unknown> = [orgId]
  const where = ["org_id = $1", living]
  if (page.cursor !== null) where.push(`id > $${values.push(page.cursor)}::uuid`)
  const wanted = alerting ? ["alerting is not null"] : []
  if (channel !== undefined) wanted.push(`channel = $${values.push(channel)}`)
  const rows = (most: number) => `select * from ${table} where ${where.join(" and ")} order by id limit ${most}`
  return {
    text: boundedRows({ rows, wanted, order: "id", columns, size: "octet_length(settings::text)" }, page),
    values
  }
}
const namedStatement = prepared`select ${columns} from ${table}
    where org_id = $1 and channel = $2 and ($3::text is null or public_key = $3) and ${living} order by id limit 2`
const publicKeysStatement = prepared`select ${columns}, public_key as "publicKey" from ${table} where channel = $1 and public_key = any ($2::text[]) and ${living}`
const lookupStatement = prepared`select 1 from ${table} where lookup_hash = any ($1::bytea[]) and ${living} limit 1`
const matchingStatement = prepared`select ${columns} from ${table} where channel = $1 and settings @> $2 and ${living} order by id`
const alertTargetsStatement = prepared`select ${columns} from ${table} where alerting is not null and ${living} order by id`
const amongStatement = prepared`select ${columns} from ${table} where id = any ($1::uuid[])`
// The first waiting message of each lane with due work, by `ready_at`, which is never later than that message.
const oldestDueStatement = prepared`select distinct on (d.org_id) d.org_id as "orgId", d.id as destination, r.message_id as "messageId", r.due_at as "dueAt"
    from ${table} d
    join lane l on l.lane = d.id and l.ready_at <= clock_timestamp()
    cross join lateral (
      select r.due_at, r.message_id from ready r where r.lane = l.lane and r.due_at >= l.first_due_at and r.due_at <= clock_timestamp()
      order by r.lane, r.due_at, r.message_id limit 1
    ) r
    where d.org_id = any ($1::text[]) and d.alerting is null
    order by d.org_id, r.due_at, r.message_id`

export interface Options {
  /** 32 bytes. */
  readonly encryptionKey: SealingKey
  readonly olderKeys?: ReadonlyArray<SealingKey>
  /** Of an answer for sending; 900 ms except in tests. */
  readonly freshFor?: Duration.Duration
}

const FRESH = Duration.millis(900)
const REMEMBERED = 10_000
const READ_AT_ONCE = 500

export const layer = ({ encryptionKey, olderKeys = [], freshFor = FRESH }: Options) =>
  Layer.effect(
    Destinations,
    Effect.gen(function* () {
      const { durable, lookups, reads } = yield* Postgres
      const pulse = yield* Pulse
      const { seal, open } = sealing(encryptionKey, olderKeys)
      const sealed = (secret: Redacted.Redacted, belongsTo: string) => seal(secret, belongsTo).toString("base64")
      const opened = (text: string, belongsTo: string) => open(Buffer.from(text, "base64"), belongsTo)

      /** As JSON text to store. */
      const settingsText = (orgId: string, id: string, settings: object): string => {
        const { headers, ...others } = settings as { readonly headers?: object }
        const stored = withUrls(others, (url, name) =>
          urlSealed(url, (parameters) => sealed(Redacted.make(parameters), parametersOf(orgId, id, name)))
        )
        if (headers === undefined) return JSON.stringify(stored)
        return JSON.stringify({
          ...stored,
          headers: sealed(Redacted.make(JSON.stringify(headers)), headersOf(orgId, id))
        })
      }
      const secretsText = (orgId: string, id: string, secrets: Secrets): string =>
        JSON.stringify(mapped(secrets, (secret, name) => sealed(secret, secretOf(orgId, id, name))))
      const hashOf = (channel: ChannelName, lookup: Redacted.Redacted) => lookupHash(encryptionKey, channel, lookup)

      const destinationOf = (row: Row): Destination => {
        const { headers, ...settings } = row.settings
        const { id, orgId, channel, published, alerting, paused, disabledReason, enabledAt, version } = row
        const { createdAt, updatedAt } = row
        const plain =
          headers === undefined ? {} : { headers: JSON.parse(Redacted.value(opened(headers, headersOf(orgId, id)))) }
        return {
          ...{
            id,
            orgId,
            channel,
            published,
            alerting,
            paused,
            disabledReason,
            enabledAt,
            version,
            createdAt,
            updatedAt
          },
          settings: withUrls({ ...settings, ...plain }, (url, name) =>
            urlOpened(url, (text) => Redacted.value(opened(text, parametersOf(orgId, id, name))))
          ),
          secretNames: Object.keys(row.secrets).toSorted()
        }
      }
      const openOf = (row: Row): OpenDestination => ({
        destination: destinationOf(row),
        secrets: mapped(row.secrets, (text, name) => opened(text, secretOf(row.orgId, row.id, name))),
        previousSecrets: row.previousSecrets.map(({ name, sealed, until }) => ({
          name,
          secret: opened(sealed, secretOf(row.orgId, row.id, name)),
          until: DateTime.makeUnsafe(until)
        }))
      })

      const read = (statement: Statement, values: ReadonlyArray<unknown>) =>
        unavailable(lookups.query<Row>(statement, values))
      const readMany = (statement: Statement, values: ReadonlyArray<unknown>) =>
        unavailable(reads.query<Row>(statement, values))
      const all = (rows: ReadonlyArray<Row>) => rows.map(destinationOf)

      /** Null where there is nothing to change. */
      const write = (...change: Parameters<typeof writeRow>) =>
        Effect.map(writeRow(...change), (row) => (row === null ? null : destinationOf(row)))
      const writeRow = Effect.fnUntraced(function* (
        statement: Statement,
        kind: DestinationKind,
        orgId: OrgId,
        id: string,
        facts: ReadonlyArray<ConfigurationFact>,
        values: (now: string) => ReadonlyArray<unknown>
      ) {
        if (!isUuid(id)) return null
        const now = yield* DateTime.now
        const factValues = yield* configurationFactValues(journalOf(kind, id), facts, now)
        const all = [orgId, id, kind.name, ...values(DateTime.formatIso(now)), ...factValues]
        const [row] = yield* unavailable(durable.query<Row>(statement, all))
        yield* Cache.invalidate(sendings, `${orgId}/${id}`)
        yield* Cache.invalidateAll(names)
        yield* pulse.wake("queue", "log")
        return row ?? null
      })
      const openOrNull = (row: Row | null) => (row === null ? null : openOf(row))

      // One of many callers reads; a failure is not remembered.
      const remembered = <A, E>(find: (key: string) => Effect.Effect<A, E>) =>
        Cache.makeWith(find, {
          capacity: REMEMBERED,
          timeToLive: (exit) => (Exit.isSuccess(exit) ? freshFor : Duration.zero)
        })
      // Claims and events name many destinations at once.
      const readSending = yield* groupCommit<string, Row | null>({
        keyOf: (key) => key,
        atOnce: 2,
        max: READ_AT_ONCE,
        run: (keys) =>
          Effect.map(
            lookups.query<Row>(sendingStatement, [keys.map((key) => key.slice(key.indexOf("/") + 1))]),
            (rows) => {
              const found = new Map(rows.map((row) => [`${row.orgId}/${row.id}`, row]))
              return keys.map((key) => found.get(key) ?? null)
            }
          )
      })
      const sendings = yield* remembered((key) =>
        Effect.map(unavailable(readSending([key])), ([row]) => openOrNull(row!))
      )
      const names = yield* remembered((key) => Effect.map(read(namedStatement, JSON.parse(key)), all))

      return Destinations.of({
        create: (kind, orgId, { settings, secrets, published, publicKey, lookup, alerting, call }) => {
          const id = randomUUID()
          const facts = creationOf({ orgId, channel: kind.name }, call)
          return Effect.map(
            write(createStatement, kind, orgId, id, facts, (now) => [
              settingsText(orgId, id, settings),
              secretsText(orgId, id, secrets),
              publicKey,
              lookup === null ? null : hashOf(kind.name, lookup),
              alerting === null ? null : JSON.stringify(alerting),
              JSON.stringify(published),
              now
            ]),
            (destination) => destination ?? ("Taken" as const)
          )
        },
        get: Effect.fnUntraced(function* (orgId, id) {
          if (!isUuid(id)) return null
          const [row] = yield* read(getStatement, [orgId, id])
          return row === undefined ? null : destinationOf(row)
        }),
        list: (orgId, filter, page) => {
          const { text, values } = listed(orgId, filter, page)
          return reading(reads.query<Row & Looked>({ text }, values), (rows) =>
            pageOfRows(rows, page, destinationOf, ({ id }) => id)
          )
        },
        change: (kind, orgId, id, { of: judged, settings = {}, secrets = {}, lookup, alerting, call }) => {
          const given: Record<string, Redacted.Redacted> = {}
          const gone: Array<string> = []
          for (const [name, secret] of Object.entries(secrets)) {
            if (secret === null) gone.push(name)
            else given[name] = secret
          }
          const about = { orgId, channel: kind.name }
          const facts = [
            ...changesOf(about, { ...settings, ...alerting }, secrets),
            ...(judged === undefined || !call ? [] : addressingOf(about, judged + 1, call.after, call.before))
          ]
          return write(changeStatement, kind, orgId, id, facts, (now) => [
            settingsText(orgId, id, settings),
            secretsText(orgId, id, given),
            gone,
            lookup === undefined ? null : hashOf(kind.name, lookup),
            JSON.stringify(alerting ?? {}),
            now,
            judged ?? null
          ])
        },
        rotateSecret: (kind, orgId, id, { name, secret, published, previousUntil }) => {
          const fact = { type: "DestinationSecretRotated", orgId, channel: kind.name, name, previousUntil } as const
          return Effect.map(
            writeRow(rotateStatement, kind, orgId, id, [fact], (now) => [
              name,
              sealed(secret, secretOf(orgId, id, name)),
              DateTime.formatIso(previousUntil),
              now,
              JSON.stringify(published)
            ]),
            openOrNull
          )
        },
        showSecret: (kind, orgId, id, name) => {
          const fact = { type: "DestinationSecretShown", orgId, channel: kind.name, name } as const
          return Effect.map(
            writeRow(showStatement, kind, orgId, id, [fact], (now) => [now]),
            openOrNull
          )
        },
        setPaused: (kind, orgId, id, paused, reason = null) =>
          write(pauseStatement, kind, orgId, id, [pauseOf({ orgId, channel: kind.name }, paused, reason)], (now) => [
            paused,
            now
          ]),
        setDisabled: (kind, orgId, id, reason) =>
          write(disableStatement, kind, orgId, id, [disablingOf({ orgId, channel: kind.name }, reason)], (now) => [
            reason,
            now
          ]),
        remove: (kind, orgId, id) => {
          const fact = { type: "DestinationRemoved", orgId, channel: kind.name } as const
          return Effect.map(
            write(removeStatement, kind, orgId, id, [fact], (now) => [now]),
            (destination) => destination !== null
          )
        },
        forSending: (orgId, id) => Cache.get(sendings, `${orgId}/${id}`),
        named: (orgId, channel, publicKey) => Cache.get(names, JSON.stringify([orgId, channel, publicKey])),
        withPublicKeys: (channel, publicKeys) =>
          Effect.map(
            unavailable(
              lookups.query<Row & { readonly publicKey: string }>(publicKeysStatement, [channel, publicKeys])
            ),
            (rows) => new Map(rows.map((row) => [row.publicKey, openOf(row)]))
          ),
        knowsLookup: (channel, lookup) =>
          Effect.map(
            read(lookupStatement, [[encryptionKey, ...olderKeys].map((key) => lookupHash(key, channel, lookup))]),
            (rows) => rows.length > 0
          ),
        matching: (channel, settings) =>
          Effect.map(readMany(matchingStatement, [channel, JSON.stringify(settings)]), all),
        alertTargets: Effect.map(readMany(alertTargetsStatement, []), all),
        among: (ids) =>
          Effect.map(
            read(amongStatement, [ids]),
            (rows) => new Map(rows.map((row) => [row.id, { ...destinationOf(row), removed: row.removed }]))
          ),
        oldestDue: (orgs) =>
          Effect.map(
            unavailable(reads.query<OldestDue & { readonly orgId: OrgId }>(oldestDueStatement, [orgs])),
            (rows) => new Map(rows.map(({ orgId, ...oldest }) => [orgId, oldest]))
          )
      })
    })
  )

const mapped = <A, B>(record: Readonly<Record<string, A>>, make: (value: A, name: string) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, make(value, name)]))

const withUrls = <Settings extends object>(
  settings: Settings,
  make: (url: string, name: string) => string
): Settings => {
  const { url, reconcile } = settings as {
    readonly url?: unknown
    readonly reconcile?: { readonly url?: unknown } | null
  }
  return {
    ...settings,
    ...(typeof url === "string" && { url: make(url, "url") }),
    ...(typeof reconcile?.url === "string" && { reconcile: { ...reconcile, url: make(reconcile.url, "reconcile") } })
  }
}
