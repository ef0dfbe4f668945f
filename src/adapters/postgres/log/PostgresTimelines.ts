/** The projection `activity` in rows, written by `project_activity`. */
import { Effect, Layer } from "effect"
import type { Step } from "../../../application/ports/Projections.ts"
import {
  type TimelineItem,
  type TimelineRow,
  Timelines,
  type WithdrawalState
} from "../../../application/ports/Timelines.ts"
import type { ConsentOf } from "../../../domain/consent/consent.ts"
import type { ChannelName, MessageId, OrgId } from "../../../domain/ids.ts"
import { pageOf } from "../filtering.ts"
import { literal } from "../literal.ts"
import { Postgres, prepared, reading } from "../Postgres.ts"
import { clearing, liveGeneration } from "./generations.ts"
import { cursorOf, joined, type Place, placed, placedItem, stepping } from "./projectionRows.ts"

const CALL =
  "project_activity($1, $2, $3, $4, $5::uuid[], $6::int[], $7::bigint[], $8, $9, $10, $11, $12::uuid[], $13, $14, $15)"
const live = `generation = ${liveGeneration("activity")}`
const listStatement = prepared`select stream_id, version, at, org_id as "orgId", dossier_id as "dossierId", activity, channel, message_id as "messageId",
      actor, details
    from activity
    where ${live} and org_id = $1 and dossier_id = $2
      and ($4::timestamptz is null or (at, stream_id, version) < ($4::timestamptz, $5::uuid, $6::int))
    order by at desc, stream_id desc, version desc limit $3`
const messagesStatement = prepared`select message_id from activity
    where ${live} and org_id = $1 and dossier_id = $2 and channel = $3 and activity = 'MESSAGE_CREATED'
      and ($4::uuid is null or message_id > $4)
    order by message_id limit $5`
const openStatement = prepared`select org_id, dossier_id, channel from withdrawal where ${live} and open limit $1`
/** An item as it is selected, with the place of its fact in place of an id. */
interface Row extends Place, Omit<TimelineItem, "id" | "at"> {}

export const layer = Layer.effect(
  Timelines,
  Effect.gen(function* () {
    const { derived, reads } = yield* Postgres
    const write = stepping(derived, CALL)

    const messages = ({ orgId, dossierId, channel }: ConsentOf, after: MessageId | null, limit: number) =>
      reading(reads.rows(messagesStatement, [orgId, dossierId, channel, after, limit]), (rows) =>
        rows.map(([id]) => id as MessageId)
      )

    const openWithdrawals = (limit: number) =>
      reading(reads.rows(openStatement, [limit]), (rows) =>
        rows.map(([orgId, dossierId, channel]) => ({
          orgId: orgId as OrgId,
          dossierId: dossierId!,
          channel: channel as ChannelName
        }))
      )

    const project = (step: Step, rows: ReadonlyArray<TimelineRow>, withdrawals: ReadonlyArray<WithdrawalState>) =>
      write(step, [
        ...placed(rows),
        joined(rows, ({ orgId }) => orgId),
        joined(rows, ({ dossierId }) => dossierId),
        joined(rows, ({ activity }) => activity),
        joined(rows, ({ channel }) => channel),
        literal(rows.map(({ messageId }) => messageId ?? "NULL")),
        joined(rows, ({ actor }) => actor),
        joined(rows, ({ details }) => JSON.stringify(details)),
        JSON.stringify(
          withdrawals.map(({ of, version, open }) => ({
            org_id: of.orgId,
            dossier_id: of.dossierId,
            channel: of.channel,
            version,
            open
          }))
        )
      ])

    return Timelines.of({
      list: (orgId, dossierId, page) => {
        const from = page.cursor?.split("/") ?? [null, null, null]
        return reading(reads.query<Row>(listStatement, [orgId, dossierId, page.limit + 1, ...from]), (rows) =>
          pageOf(rows, page, placedItem, cursorOf)
        )
      },
      messages,
      openWithdrawals,
      project,
      clear: clearing(derived, "activity", ["activity", "withdrawal"])
    })
  })
)
