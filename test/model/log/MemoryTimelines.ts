/** The projection `activity` over maps: every question is a filter and a sort. */
import { Effect, Layer } from "effect"
import { Timelines } from "../../../src/application/ports/Timelines.ts"
import type { ConsentOf } from "../../../src/domain/consent/consent.ts"
import { Memory } from "../Memory.ts"
import { addRows, newestFirst, placeOf } from "../store/entries.ts"
import { clearRows, liveRows, moveRun, rowsOf } from "./runs.ts"

const keyOf = ({ orgId, channel, dossierId }: ConsentOf) => `${orgId}:${channel}:${dossierId}`

export const layer = Layer.effect(
  Timelines,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables } = memory
    const rowsOfDossier = (orgId: string, dossierId: string) =>
      [...liveRows(tables, "activity", tables.timelines).values()].filter(
        (row) => row.orgId === orgId && row.dossierId === dossierId
      )

    return Timelines.of({
      list: (orgId, dossierId, page) =>
        Effect.sync(() => {
          const { items, nextCursor } = newestFirst(rowsOfDossier(orgId, dossierId), page)
          return {
            items: items.map(({ stream, version, ...item }) => ({
              ...item,
              id: placeOf({ stream, version, at: item.at })
            })),
            nextCursor
          }
        }),
      messages: ({ orgId, dossierId, channel }, after, limit) =>
        Effect.sync(() =>
          rowsOfDossier(orgId, dossierId)
            .flatMap(({ activity, messageId, channel: by }) =>
              activity === "MESSAGE_CREATED" && messageId !== null && by === channel ? [messageId] : []
            )
            .filter((id) => after === null || id > after)
            .toSorted()
            .slice(0, limit)
        ),
      openWithdrawals: (limit) =>
        Effect.sync(() =>
          [...liveRows(tables, "activity", tables.withdrawals).values()]
            .flatMap(({ of, open }) => (open ? [of] : []))
            .slice(0, limit)
        ),
      project: (step, rows, withdrawals) =>
        Effect.sync(() => {
          if (!moveRun(memory, "activity", step)) return false
          addRows(tables, tables.timelines, step, rows)
          const states = rowsOf(tables.withdrawals, step.generation)
          for (const state of withdrawals) {
            if ((states.get(keyOf(state.of))?.version ?? 0) < state.version) states.set(keyOf(state.of), state)
          }
          return true
        }),
      clear: () =>
        Effect.sync(
          () => clearRows(tables, "activity", tables.timelines) + clearRows(tables, "activity", tables.withdrawals)
        )
    })
  })
)
