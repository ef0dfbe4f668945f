/** Audit and timelines, read from the log by the index on `event.org_id`. */
import { DateTime, Effect, Layer } from "effect"
import { type AuditFilter, AuditTrail, activityIn, itemOf } from "../../../application/ports/AuditTrail.ts"
import type { LoggedFact } from "../../../application/ports/EventStore.ts"
import type { JournalName } from "../../../application/ports/Journals.ts"
import { operations, typesTelling } from "../../../domain/audit/entry.ts"
import { activeOperations } from "../../../domain/consent/activity.ts"
import type { ChannelName, OrgId } from "../../../domain/ids.ts"
import { messageOf } from "../../../domain/streams.ts"
import { beyond, conditionsOf, type Page, pageOf } from "../filtering.ts"
import { Postgres, reading } from "../Postgres.ts"
import { logged, loggedOf, wholeColumns } from "../store/logged.ts"
import { streamIdOf } from "../store/PostgresJournals.ts"

const ORDER = "e.at desc, e.stream_id desc, e.version desc"
const active = typesTelling(activeOperations)

export const layer = Layer.effect(
  AuditTrail,
  Effect.gen(function* () {
    const { reads } = yield* Postgres

    const factsWhere = (conditions: ReadonlyArray<string>, values: Array<unknown>, page: Page, columns = "") => {
      const where = [
        ...conditions,
        ...beyond("e.at, e.stream_id, e.version", ["timestamptz", "uuid", "int"], page, values)
      ]
      const text = `select ${wholeColumns}${columns} from ${logged} where ${where.join(" and ")} order by ${ORDER} limit ${page.limit + 1}`
      return reads.rows({ text }, values)
    }

    const list = (orgId: OrgId, { operation, subject, ...filter }: AuditFilter, page: Page) => {
      const values: Array<unknown> = [orgId]
      const conditions = [...conditionsOf(inOrder, filter, values)]
      const types = typesTelling(operation === undefined ? operations : [operation])
      conditions.push(`split_part(e.name, '@', 1) = any ($${values.push(types)})`)
      if (subject === undefined) conditions.push("e.org_id = $1")
      else {
        const stream = `$${values.push(idOf(subject))}::uuid`
        conditions.push(
          `e.stream_id = ${stream} and (e.org_id = $1 or exists (select from message o where o.id = ${stream} and o.org_id = $1))`
        )
      }
      return reading(factsWhere(conditions, values, page), (rows) =>
        pageOf(rows.map(loggedOf), page, (fact) => itemOf(orgId, fact), cursorOf)
      )
    }

    const timeline = (orgId: OrgId, dossierId: string, journals: ReadonlyArray<JournalName>, page: Page) => {
      const values: Array<unknown> = [orgId, dossierId]
      const consents = `$${values.push(journals.map(streamIdOf))}`
      const conditions = [
        `e.stream_id = any (array(select m.id from message m where m.org_id = $1 and m.dossier_id = $2) || ${consents}::uuid[]
          || array(select b.stream_id from event b where b.org_id = $1 and b.name = 'MessageBlocked@1' and b.data ->> 'dossierId' = $2))`,
        `split_part(e.name, '@', 1) = any ($${values.push(active)})`
      ]
      const channel = ", (select o.channel from message o where o.id = e.stream_id)"
      return reading(factsWhere(conditions, values, page, channel), (rows) =>
        pageOf(
          rows,
          page,
          (row) => activityIn(dossierId, loggedOf(row), row.at(-1) as ChannelName | null),
          (row) => cursorOf(loggedOf(row))
        )
      )
    }

    return AuditTrail.of({ list, timeline })
  })
)

const inOrder = [
  ["actor", "coalesce(d.actor, e.actor) ="],
  ["from", "e.at >="],
  ["to", "e.at <"]
] as const

const idOf = (stream: string): string => messageOf(stream) ?? streamIdOf(stream as JournalName)

const cursorOf = ({ stream, version, at }: LoggedFact): string => `${DateTime.formatIso(at)}/${idOf(stream)}/${version}`
