import { Context } from "effect"
import type { BrokerReach } from "../../domain/outage/decider.ts"
import type { FromStore } from "../errors.ts"

/** What goes on over Posthaste's own broker: commands come in, facts go out. */
export type BrokerTask = "commands" | "facts"

/** How often a process reports while nothing changes. */
export const REPORT_EVERY_MS = 5_000
/** A report that was not renewed for longer is that of a process which is gone. */
export const REPORT_HOLDS_MS = 20_000

/**
 * Whether Posthaste's own broker is reached, as the processes that need it report. Of several processes one reaches it for all:
 * the broker is away when there is something that no process can do with it. All times are the store's.
 */
export class BrokerReports extends Context.Service<
  BrokerReports,
  {
    /** What has been so before keeps its time. */
    readonly report: (process: string, task: BrokerTask, away: boolean) => FromStore<void>
    /** Null while no process tries to reach it. */
    readonly reach: FromStore<BrokerReach | null>
  }
>()("posthaste/application/ports/BrokerReports") {}
