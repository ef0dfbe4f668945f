import { DateTime } from "effect"
import type { CircuitSituation } from "../../circuit/situation.ts"
import type { RateLimit } from "../../delivery/rateLimit.ts"
import type { Disabling, Pause, Suspension } from "../../destination/situation.ts"
import type { MessageId } from "../../ids.ts"
import type { MessageStatus } from "../machine.ts"
import { type StoredFact, timeline } from "../view.ts"

export interface Surroundings {
  readonly parked?: { readonly at: DateTime.Utc } | null
  readonly suspension: Suspension | null
  readonly pause: Pause | null
  readonly disabling: Disabling | null
  readonly circuit: CircuitSituation
  readonly rateLimit: RateLimit | null
  /** The message with the same ordering key that goes first. */
  readonly before: { readonly id: MessageId; readonly status: MessageStatus } | null
  readonly ahead: number | null
  readonly workers: number | null
  readonly restorations: ReadonlyArray<Restoration>
  readonly unknown: ReadonlyArray<string>
}

/** The store was restored from a backup: the time between the two moments is unknown. */
export interface Restoration {
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
