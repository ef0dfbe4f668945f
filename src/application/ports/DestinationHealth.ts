import { Context } from "effect"
import type { HealthBucket, HealthChange } from "../../domain/delivery/health.ts"
import type { DestinationId } from "../../domain/ids.ts"
import type { FromStore, Page, PageRequest } from "../errors.ts"
import type { Step } from "./Projections.ts"

/** The state of a destination that attempts ended at. */
export type HealthState = Pick<HealthChange, "failingSince" | "lastFailedAt" | "lastSucceededAt">

/**
 * The projection `health`: what became of the attempts at each destination, in one row of state and buckets of five
 * minutes for a day. It is derived, a little behind, rebuildable; readers see the live generation.
 *
 * `project` adds the changes and moves the position in one transaction. Buckets older than `KEPT_MS` before the newest of
 * their destination are dropped.
 */
export class DestinationHealth extends Context.Service<
  DestinationHealth,
  {
    /** Null where no attempt has ended. */
    readonly read: (
      destination: DestinationId
    ) => FromStore<(HealthState & { readonly buckets: ReadonlyArray<HealthBucket> }) | null>
    /** Destinations whose last attempts failed, over a minute at least, by id. */
    readonly failing: (page: PageRequest) => FromStore<Page<HealthState & { readonly destination: DestinationId }>>
    /** Writes nothing and answers false when the run has left the step's `from`. */
    readonly project: (step: Step, changes: ReadonlyMap<DestinationId, HealthChange>) => FromStore<boolean>
    /** Deletes up to `limit` rows of earlier generations; answers their number. */
    readonly clear: (limit: number) => FromStore<number>
  }
>()("posthaste/application/ports/DestinationHealth") {}
