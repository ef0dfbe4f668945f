/** Destinations of every kind over one map. Secrets stay redacted; nothing is at rest here, so nothing is encrypted. */
import { randomUUID } from "node:crypto"
import { DateTime, Effect, Equal, Layer, Redacted } from "effect"
import { CommandedBy } from "../../../src/application/commandedBy.ts"
import { type Destination, Destinations, goodAt } from "../../../src/application/ports/Destinations.ts"
import type { OldestDue } from "../../../src/domain/condition/decider.ts"
import {
  addressingOf,
  changesOf,
  creationOf,
  type DestinationKind,
  disablingOf,
  journalOf,
  pauseOf
} from "../../../src/domain/destination/changes.ts"
import type { ConfigurationFact } from "../../../src/domain/destination/facts.ts"
import { toRecorded } from "../../../src/domain/destination/facts.ts"
import { DestinationId, type OrgId } from "../../../src/domain/ids.ts"
import { copySettingsToLane, freeLane } from "../deliver/lanes.ts"
import { isDue } from "../deliver/waiting.ts"
import { addToJournal, type DestinationRow, Memory } from "../Memory.ts"

export const layer = Layer.effect(
  Destinations,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const { destinations } = tables
    const living = () =>
      [...destinations.values()]
        .filter(({ removed }) => !removed)
        .toSorted((a, b) => (a.destination.id < b.destination.id ? -1 : 1))
    const find = (orgId: OrgId, id: DestinationId) => {
      const row = destinations.get(id)
      return row === undefined || row.removed || row.destination.orgId !== orgId ? null : row
    }
    const only = (rows: ReadonlyArray<DestinationRow>): ReadonlyArray<Destination> =>
      rows.map(({ destination }) => destination)

    /** Row and facts in one step. */
    const write = (...change: Parameters<typeof writeRow>) =>
      Effect.map(writeRow(...change), (row) => row?.destination ?? null)
    const writeRow = (
      kind: DestinationKind,
      orgId: OrgId,
      id: DestinationId,
      change: (row: DestinationRow) => {
        readonly row: DestinationRow
        readonly facts: ReadonlyArray<ConfigurationFact>
      }
    ) =>
      Effect.map(CommandedBy, (actor) => {
        const before = find(orgId, id)
        if (before === null || before.destination.channel !== kind.name) return null
        const { row, facts } = change(before)
        store(kind, row, facts, actor)
        return row
      })
    const store = (
      kind: DestinationKind,
      row: DestinationRow,
      facts: ReadonlyArray<ConfigurationFact>,
      actor: string | null
    ) => {
      const { id } = row.destination
      destinations.set(id, row)
      addToJournal(tables, journalOf(kind, id), facts.map(toRecorded), now(), actor)
      if (row.removed) freeLane(memory, id)
      else copySettingsToLane(memory, row.destination)
    }
    const openOf = (row: DestinationRow | null) =>
      row === null ? null : { destination: row.destination, secrets: row.secrets, previousSecrets: row.previousSecrets }

    return Destinations.of({
      create: (kind, orgId, { settings, secrets, published, publicKey, lookup, alerting, call }) =>
        Effect.map(CommandedBy, (actor) => {
          const channel = kind.name
          const isTaken = living().some((row) => row.destination.channel === channel && row.publicKey === publicKey)
          if (publicKey !== null && isTaken) return "Taken" as const
          const id = DestinationId.make(randomUUID())
          const secretNames = Object.keys(secrets).toSorted()
          const times = { createdAt: now(), updatedAt: now() }
          const destination = {
            id,
            orgId,
            channel,
            settings,
            secretNames,
            published,
            alerting,
            paused: false,
            disabledReason: null,
            enabledAt: null,
            version: 1,
            ...times
          }
          const row = { destination, secrets, previousSecrets: [], publicKey, lookup, removed: false }
          store(kind, row, creationOf({ orgId, channel }, call), actor)
          return destination
        }),
      get: (orgId, id) => Effect.sync(() => find(orgId, id)?.destination ?? null),
      list: (orgId, { channel, alerting }, { cursor, limit }) =>
        Effect.sync(() => {
          const left = only(living()).filter(
            (each) =>
              each.orgId === orgId &&
              (channel === undefined || each.channel === channel) &&
              (alerting === undefined || each.alerting !== null) &&
              (cursor === null || each.id > cursor)
          )
          const items = left.slice(0, limit)
          return { items, nextCursor: left.length > limit ? items.at(-1)!.id : null }
        }),
      change: (kind, orgId, id, { of: judged, settings = {}, secrets: given = {}, lookup, alerting, call }) => {
        const about = { orgId, channel: kind.name }
        if (judged !== undefined && find(orgId, id)?.destination.version !== judged) return Effect.succeed(null)
        return write(kind, orgId, id, ({ destination: before, ...row }) => {
          const left = Object.entries({ ...row.secrets, ...given }).flatMap(([name, secret]) =>
            secret === null ? [] : [[name, secret] as const]
          )
          const secrets = Object.fromEntries(left)
          const destination = {
            ...before,
            settings: { ...before.settings, ...settings },
            secretNames: Object.keys(secrets).toSorted(),
            alerting: before.alerting === null ? null : { ...before.alerting, ...alerting },
            version: before.version + 1,
            updatedAt: now()
          }
          return {
            row: {
              ...row,
              destination,
              secrets,
              previousSecrets: goodAt(
                row.previousSecrets.filter(({ name }) => !(name in given)),
                now()
              ),
              lookup: lookup ?? row.lookup
            },
            facts: [
              ...changesOf(about, { ...settings, ...alerting }, given),
              ...(judged === undefined || !call ? [] : addressingOf(about, judged + 1, call.after, call.before))
            ]
          }
        })
      },
      rotateSecret: (kind, orgId, id, { name, secret, published, previousUntil }) =>
        writeRow(kind, orgId, id, (row) => {
          const before = row.secrets[name]
          const previousSecrets = [
            ...(before === undefined ? [] : [{ name, secret: before, until: previousUntil }]),
            ...row.previousSecrets.map((each) => ({ ...each, until: DateTime.min(each.until, previousUntil) }))
          ]
          const destination = {
            ...row.destination,
            published: { ...row.destination.published, ...published },
            version: row.destination.version + 1,
            updatedAt: now()
          }
          const secrets = { ...row.secrets, [name]: secret }
          return {
            row: { ...row, destination, secrets, previousSecrets: goodAt(previousSecrets, now()) },
            facts: [{ type: "DestinationSecretRotated", orgId, channel: kind.name, name, previousUntil }]
          }
        }).pipe(Effect.map(openOf)),
      showSecret: (kind, orgId, id, name) =>
        writeRow(kind, orgId, id, (row) => ({
          row: { ...row, previousSecrets: goodAt(row.previousSecrets, now()) },
          facts: [{ type: "DestinationSecretShown", orgId, channel: kind.name, name }]
        })).pipe(Effect.map(openOf)),
      setPaused: (kind, orgId, id, paused, reason = null) =>
        write(kind, orgId, id, (row) =>
          row.destination.paused === paused
            ? { row, facts: [] }
            : {
                row: { ...row, destination: { ...row.destination, paused, updatedAt: now() } },
                facts: [pauseOf({ orgId, channel: kind.name }, paused, reason)]
              }
        ),
      setDisabled: (kind, orgId, id, reason) =>
        write(kind, orgId, id, (row) => {
          const { disabledReason } = row.destination
          if ((disabledReason === null) === (reason === null)) return { row, facts: [] }
          const change = { disabledReason: reason, updatedAt: now(), ...(reason === null && { enabledAt: now() }) }
          return {
            row: { ...row, destination: { ...row.destination, ...change } },
            facts: [disablingOf({ orgId, channel: kind.name }, reason)]
          }
        }),
      remove: (kind, orgId, id) =>
        Effect.map(
          write(kind, orgId, id, (row) => ({
            row: { ...row, secrets: {}, previousSecrets: [], publicKey: null, lookup: null, removed: true },
            facts: [{ type: "DestinationRemoved", orgId, channel: kind.name }]
          })),
          (removed) => removed !== null
        ),
      forSending: (orgId, id) => Effect.sync(() => openOf(find(orgId, id))),
      named: (orgId, channel, publicKey) =>
        Effect.sync(() =>
          only(
            living().filter(
              (row) =>
                row.destination.orgId === orgId &&
                row.destination.channel === channel &&
                (publicKey === null || row.publicKey === publicKey)
            )
          ).slice(0, 2)
        ),
      withPublicKeys: (channel, publicKeys) =>
        Effect.sync(
          () =>
            new Map(
              living()
                .filter(
                  ({ destination, publicKey }) => destination.channel === channel && publicKeys.includes(publicKey!)
                )
                .map((row) => [row.publicKey!, openOf(row)!])
            )
        ),
      knowsLookup: (channel, lookup) =>
        Effect.sync(() =>
          living().some(
            (row) =>
              row.destination.channel === channel &&
              row.lookup !== null &&
              Redacted.value(row.lookup) === Redacted.value(lookup)
          )
        ),
      matching: (channel, settings) =>
        Effect.sync(() =>
          only(living()).filter((each) => {
            const its = each.settings as unknown as Record<string, unknown>
            return (
              each.channel === channel &&
              Object.entries(settings).every(([name, value]) => Equal.equals(its[name], value))
            )
          })
        ),
      alertTargets: Effect.sync(() => only(living()).filter(({ alerting }) => alerting !== null)),
      among: (ids) =>
        Effect.sync(
          () =>
            new Map(
              ids.flatMap((id) => {
                const row = destinations.get(id)
                return row === undefined ? [] : [[id, { ...row.destination, removed: row.removed }]]
              })
            )
        ),
      oldestDue: (orgs) =>
        Effect.sync(() => {
          const oldest = new Map<OrgId, OldestDue>()
          for (const [lane, waiting] of tables.lanes) {
            const row = destinations.get(lane)
            const first = waiting.find((message) => isDue(message, now()))
            if (row === undefined || row.destination.alerting !== null || first === undefined) continue
            const { orgId } = row.destination
            const known = oldest.get(orgId)
            if (!orgs.includes(orgId)) continue
            if (known !== undefined && DateTime.isLessThanOrEqualTo(known.dueAt, first.dueAt)) continue
            oldest.set(orgId, { messageId: first.messageId, destination: lane, dueAt: first.dueAt })
          }
          return oldest
        })
    })
  })
)
