/**
 * Whether the store answers this process: one outage for all parts that meet it, from the first call without answer to
 * the first answer after which nothing failed for a while. The log has both, once.
 */
import { Clock, Context, Effect } from "effect"
import { StoreUnavailable } from "./ports/errors.ts"

/** A call that was under way may still fail after another was answered. */
const QUIET_MS = 2_000

export interface Outage {
  readonly sinceMs: number
  readonly parts: ReadonlyMap<string, number>
  readonly reason: string
}

export interface StoreHealthService {
  /** `part` got no answer. True when it is logged already. */
  readonly failed: (part: string, cause: unknown) => Effect.Effect<boolean>
  readonly answered: Effect.Effect<void>
  readonly outage: () => Outage | null
}

/** The default keeps no count: each caller logs its own failures. */
export const StoreHealth = Context.Reference<StoreHealthService>("posthaste/application/storeHealth", {
  defaultValue: () => ({ failed: () => Effect.succeed(false), answered: Effect.void, outage: () => null })
})

/** Reports failed calls of one task to `StoreHealth`, and logs the first one if that does not. */
export const outageOf = (store: StoreHealthService, task: string) => {
  let isTold = false
  return {
    failed: (cause: unknown): Effect.Effect<void> => {
      const isFirst = !isTold
      isTold = true
      return Effect.flatMap(store.failed(task, cause), (isLogged) =>
        isLogged || !isFirst ? Effect.void : Effect.logWarning(`${task} waits for the store`, cause)
      )
    },
    over: (): void => {
      isTold = false
    }
  }
}

const reasonOf = (cause: unknown): string =>
  cause instanceof StoreUnavailable && cause.says !== undefined ? cause.says : "the store does not answer"

export const makeStoreHealth = (): StoreHealthService => {
  let outage: { sinceMs: number; lastMs: number; reason: string; readonly parts: Map<string, number> } | null = null

  const failed = Effect.fnUntraced(function* (part: string, cause: unknown) {
    const now = yield* Clock.currentTimeMillis
    const isFirst = outage === null
    const reason = reasonOf(cause)
    outage ??= { sinceMs: now, lastMs: now, reason, parts: new Map() }
    outage.lastMs = now
    outage.reason = reason
    if (!outage.parts.has(part)) outage.parts.set(part, now)
    if (isFirst) yield* Effect.logWarning(`the store does not answer (${part})`, cause)
    return true
  })

  const over = Effect.fnUntraced(function* () {
    const now = yield* Clock.currentTimeMillis
    if (outage === null || Math.abs(now - outage.lastMs) < QUIET_MS) return
    const seconds = Math.max(0, Math.round((now - outage.sinceMs) / 1000))
    outage = null
    yield* Effect.logInfo(`the store answers again, ${seconds} s`)
  })

  return { failed, answered: Effect.suspend(() => (outage === null ? Effect.void : over())), outage: () => outage }
}
