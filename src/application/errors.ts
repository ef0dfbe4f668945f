/** Words that every room of the application shares: what the world says no with, and how a list is answered. */
import { type Effect, Schema } from "effect"

/** The store could not answer. What was being written may or may not have been written. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  cause: Schema.Defect(),
  /** What does not answer, for the operator, where the adapter knows it in words. */
  says: Schema.optionalKey(Schema.String)
}) {}

/** The answer of a store that may not answer. */
export type FromStore<A> = Effect.Effect<A, StoreUnavailable>

/** What is wrong with one field of a request, in words its writer can act on. */
export interface Fault {
  readonly field: string
  readonly reason: string
}

/** The destination would move to another place and take secrets there. Nothing was changed: the request must bring them. */
export class SecretsNeeded extends Schema.TaggedError<SecretsNeeded>()("SecretsNeeded", {
  faults: Schema.Array(Schema.Struct({ field: Schema.String, reason: Schema.String }))
}) {}

/**
 * One page of a list; `nextCursor` is null on the last. What is looked at for a page is bounded, so any page may have fewer items than were
 * asked for, even none, and others follow it all the same: whoever wants all goes on until there is no cursor.
 */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

/** What is read for a page has so many bytes, and those of one item more. */
export const PAGE_READ_BYTES = 1024 * 1024

/** `cursor` is the `nextCursor` of the page before; null asks for the first page. */
export interface PageRequest {
  readonly cursor: string | null
  readonly limit: number
}
