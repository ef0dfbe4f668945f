import { type Effect, Schema } from "effect"

/** The store did not answer. A write may or may not have happened. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  cause: Schema.Defect(),
  /** For the operator, where the adapter can name it. */
  says: Schema.optionalKey(Schema.String)
}) {}

export type FromStore<A> = Effect.Effect<A, StoreUnavailable>

export interface Fault {
  readonly field: string
  readonly reason: string
}

/** The destination would move to another place with its secrets. Nothing was changed: the request must bring them. */
export class SecretsNeeded extends Schema.TaggedError<SecretsNeeded>()("SecretsNeeded", {
  faults: Schema.Array(Schema.Struct({ field: Schema.String, reason: Schema.String }))
}) {}

/**
 * One page of a list; `nextCursor` is null on the last. The work for a page is bounded, so any page may be short or
 * empty though others follow.
 */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

/** The bytes that are read for a page, with one item beyond them. */
export const PAGE_READ_BYTES = 1024 * 1024

export interface PageRequest {
  readonly cursor: string | null
  readonly limit: number
}
