/**
 * Whether several orgs ask for something at this time. What one org has at a time of what all share is cut short only then: an org that
 * asks alone is held back by nothing. All that shares something out goes by this one answer, so a request that has just come in counts
 * for the statements that come after it, too.
 */
import { Context } from "effect"

/** How long after another org asked it is still reckoned with. */
const RECKONED_MS = 1_000

/** Times are milliseconds of the monotonic clock. */
export interface Asking {
  /** Somebody asks for something on behalf of `org`. */
  readonly asked: (org: string, nowMs: number) => void
  readonly areSeveral: (nowMs: number) => boolean
}

export const makeAskers = (): Asking => {
  let last: string | null = null
  let until = Number.NEGATIVE_INFINITY
  return {
    asked: (org, nowMs) => {
      if (last !== null && org !== last) until = nowMs + RECKONED_MS
      last = org
    },
    areSeveral: (nowMs) => nowMs < until
  }
}

/** Those of this process. */
export const Askers = Context.Reference<Asking>("posthaste/application/askers", { defaultValue: makeAskers })
