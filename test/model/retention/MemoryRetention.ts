/** Sweeps over the views in the order of their ids. One synchronous step each, so two are never under way at once. */
import { DateTime, Effect, Layer } from "effect"
import { Retention } from "../../../src/application/ports/Retention.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { endedWell, type MessageView } from "../../../src/domain/message/view.ts"
import { liveViews } from "../log/runs.ts"
import { Memory, type Tables } from "../Memory.ts"
import { forgetEntries } from "../store/entries.ts"

const ended: ReadonlySet<MessageView["status"]> = new Set(endedWell)

/** Its places in the feed stay, so that positions keep their meaning; there is nothing left to read at them. */
const forget = (tables: Tables, id: MessageId): void => {
  tables.streams.delete(id)
  tables.bodies.delete(id)
  tables.responses.delete(id)
  tables.forgotten.add(id)
  for (const views of tables.views.values()) views.delete(id)
  forgetEntries(tables, id)
  for (const [key, { messageId }] of tables.idempotencyKeys) if (messageId === id) tables.idempotencyKeys.delete(key)
}

export const layer = Layer.effect(
  Retention,
  Effect.gen(function* () {
    const { tables } = yield* Memory
    return Retention.of({
      sweep: (endedBefore, from, limit) =>
        Effect.sync(() => {
          const views = liveViews(tables)
          const seen = [...views.keys()]
            .filter((id) => from === null || id > from)
            .toSorted()
            .slice(0, limit)
          const old = seen.filter((id) => {
            const { status, endedAt } = views.get(id)!
            return ended.has(status) && endedAt !== null && DateTime.isLessThan(endedAt, endedBefore)
          })
          for (const id of old) forget(tables, id)
          return { removed: old.length, next: seen.length < limit ? null : seen.at(-1)! }
        })
    })
  })
)
