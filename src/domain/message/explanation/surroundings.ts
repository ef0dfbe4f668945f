/** The surroundings of a message: what explains it and is not in its own facts. */
import type { DateTime } from "effect"
import type { CircuitSituation } from "../../circuit/situation.ts"
import type { RateLimit } from "../../delivery/rateLimit.ts"
import type { Disabling, Pause, Suspension } from "../../destination/situation.ts"
import type { MessageId } from "../../ids.ts"
import type { MessageStatus } from "../machine.ts"
import type { Restoration } from "./restoration.ts"

export interface Surroundings {
  /** Absent where it was not looked up. */
  readonly parked?: { readonly at: DateTime.Utc } | null
  readonly suspension: Suspension | null
  readonly pause: Pause | null
  readonly disabling: Disabling | null
  readonly circuit: CircuitSituation
  readonly rateLimit: RateLimit | null
  /** The message with the same ordering key that goes first. */
  readonly before: { readonly id: MessageId; readonly status: MessageStatus } | null
  readonly ahead: number | null
  /** Living processes that send messages; null when unknown. */
  readonly workers: number | null
  /** Oldest first. */
  readonly restorations: ReadonlyArray<Restoration>
  readonly unknown: ReadonlyArray<string>
}
