import { Context, type DateTime } from "effect"
import type { ChannelName } from "../../domain/ids.ts"
import type { FromStore } from "../errors.ts"

/** What is old enough. Null: nothing is, however old. An org that has days of its own goes by these, counted from `now`. */
export interface Before {
  readonly now: DateTime.Utc
  /** What ended well before. */
  readonly ended: DateTime.Utc | null
  readonly dead: DateTime.Utc | null
  /** No org's own days are more than these; null: as many as it has. */
  readonly daysMax: number | null
}

export interface Sweep {
  readonly removed: number
  /** Where the next sweep goes on; null after the last. */
  readonly next: string | null
}

/**
 * Forgets messages that ended well: messages DELIVERED, CANCELLED or EXPIRED before a time are deleted with all their
 * data (stream, body, answers, view, idempotency key), and the counts go down with them.
 *
 * Dead letters, and messages SENT whose receipt never came, live until `dead`; one that holds the
 * place of its ordering key stays all the same, and so does one that has moved since its view was made. Messages that have not ended stay. Receipts that were parked go with dead letters.
 *
 * `sweepEvents` forgets events that were published before a time and none of whose messages is left, each with its
 * journal, its body, its key and whom it was for.
 *
 * `sweepDeeds` forgets journals from before a time that tell of one deed: a body that was seen, a key or a command that was refused,
 * a message that was blocked for want of a consent, a replay that has ended.
 *
 * `sweepDestinations` forgets destinations that were removed before a time and that nothing points at any more, neither a message, wherever
 * it stands, nor a fact that a reader of the log owes: each with its row, its journals, its lane and its health. `journals` has the prefix of
 * each channel's journals; a destination of another channel stays. The caller knows that all readers of the log have read up to the
 * time. Lanes that are nobody's, and as if nothing had ever been in them, go too.
 *
 * `sweepFronts` forgets the fronts of journals that go on for ever (see domain/endless.ts): in each, what was before the last fact of
 * before a time after which it rests, with its entries in the audit. Versions stay, so the state that the rest tells stays the same, and
 * so does everybody's place. It answers how many facts went. Nothing goes that somebody owes, or has yet to read who keeps a place in the
 * log: a projection, also one that is built anew, alerts, and the outlet, unless nobody has held that since the time.
 *
 * Each sweep examines at most `limit` of them in one short transaction. While one sweep is under way another one does
 * nothing and answers null.
 */
export class Retention extends Context.Service<
  Retention,
  {
    readonly sweep: (before: Before, from: string | null, limit: number) => FromStore<Sweep | null>
    readonly sweepEvents: (before: Before, from: string | null, limit: number) => FromStore<Sweep | null>
    readonly sweepDestinations: (
      removedBefore: DateTime.Utc,
      journals: ReadonlyMap<ChannelName, string>,
      from: string | null,
      limit: number
    ) => FromStore<Sweep | null>
    readonly sweepFronts: (restedBefore: DateTime.Utc, from: string | null, limit: number) => FromStore<Sweep | null>
    readonly sweepDeeds: (doneBefore: DateTime.Utc, from: string | null, limit: number) => FromStore<Sweep | null>
  }
>()("posthaste/application/ports/Retention") {}
