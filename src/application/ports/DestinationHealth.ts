import { Context } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import type { HealthBucket, HealthChange } from "../../domain/message/health.ts"
import type { FromStore, Page, PageRequest } from "./errors.ts"
import type { Step } from "./Projections.ts"

export type HealthState = Pick<HealthChange, "failingSince" | "lastFailedAt" | "lastSucceededAt">

/**
 * The projection `health`: the attempts at each destination, as one row of state and buckets of five minutes for a day.
 * Rebuildable, a little behind; readers see the live generation. `project` adds changes and moves the position in one
 * transaction, and drops buckets older than `KEPT_MS` before the newest.
 */
export class DestinationHealth extends Context.Service<
  DestinationHealth,
  {
    readonly read: (
      destination: DestinationId
    ) => FromStore<(HealthState & { readonly buckets: ReadonlyArray<HealthBucket> }) | null>
    /** Destinations whose last attempts failed, over a minute at least, by id. */
    readonly failing: (page: PageRequest) => FromStore<Page<HealthState & { readonly destination: DestinationId }>>
    /** Writes nothing and answers false when the run has left the step's `from`. */
    readonly project: (step: Step, changes: ReadonlyMap<DestinationId, HealthChange>) => FromStore<boolean>
    readonly clear: (limit: number) => FromStore<number>
  }
>()("posthaste/application/ports/DestinationHealth") {}
