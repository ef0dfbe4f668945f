/** A message that may have been sent although its facts do not say so, because the store was restored from a backup. */
import { DateTime } from "effect"
import { type StoredFact, timeline } from "../view.ts"

/** The store was restored from a backup: the time between the two moments is unknown. */
export interface Restoration {
  /** Everything stored up to here is known. */
  readonly savedAt: DateTime.Utc
  readonly noticedAt: DateTime.Utc
}

/** A message that waited, or was under way, in that backup. */
export type Restored = Restoration & { readonly says: string }

/** Null as well where the facts of the time in between are there, because the streams were not restored. */
export const restoredOf = (
  history: ReadonlyArray<StoredFact>,
  restorations: ReadonlyArray<Restoration>,
  at: DateTime.Utc
): Restored | null => {
  const found = restorations.findLast(({ savedAt, noticedAt }) => {
    if (DateTime.isGreaterThan(noticedAt, at)) return false
    const saved = history.filter((fact) => DateTime.isLessThanOrEqualTo(fact.at, savedAt))
    if (saved.length === 0) return false
    const next = history[saved.length]
    if (next !== undefined && DateTime.isLessThan(next.at, noticedAt)) return false
    const { status } = timeline(saved).message
    return status === "QUEUED" || status === "SENDING"
  })
  return found === undefined
    ? null
    : {
        ...found,
        says: "the database was restored to an earlier moment, when the message had not ended: it may have been sent after that moment and before the restore, and is then sent a second time under the same id"
      }
}
