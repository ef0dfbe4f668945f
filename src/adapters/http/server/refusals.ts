/**
 * Counts requests with bad keys, for the audit. The most frequent are stored once a minute, so that any number of tries
 * costs a few facts.
 */
import { Effect, type Scope } from "effect"
import type { Holder } from "../../../application/ports/ApiKeys.ts"
import type { StoreUnavailable } from "../../../application/ports/errors.ts"
import type { AccessFact, LoginRefused, Refusal } from "../../../domain/access/facts.ts"

type Refused = typeof LoginRefused.Type

const EVERY = "1 minute"
/** A minute, beside one fact for all the rest. */
const FACTS_MAX = 20
const KINDS_MAX = 1_000

export interface Refusals {
  readonly note: (holder: Pick<Holder, "id" | "orgId"> | null, reason: Refusal, address: string | null) => void
  readonly tell: Effect.Effect<void, StoreUnavailable>
}

export const refusalsTo = <R>(store: (fact: AccessFact) => Effect.Effect<void, StoreUnavailable, R>) => {
  let noted = new Map<string, Refused>()
  let rest = 0
  const note: Refusals["note"] = (holder, reason, address) => {
    const key = holder === null ? null : { id: holder.id, orgId: holder.orgId }
    const kind = JSON.stringify([key?.id, reason, address])
    const known = noted.get(kind)
    if (known === undefined && noted.size >= KINDS_MAX) rest += 1
    else noted.set(kind, { type: "LoginRefused", key, reason, address, count: (known?.count ?? 0) + 1 })
  }
  const tell = Effect.gen(function* () {
    const all = [...noted.values()].sort((a, b) => b.count - a.count)
    const others = all.slice(FACTS_MAX).reduce((sum, { count }) => sum + count, rest)
    noted = new Map()
    rest = 0
    yield* Effect.forEach(all.slice(0, FACTS_MAX), store)
    if (others > 0) yield* store({ type: "LoginRefused", key: null, reason: "unknown", address: null, count: others })
  })
  return { note, tell }
}

/** Stores every minute and at the end. */
export const makeRefusals = Effect.fnUntraced(function* <R>(
  store: (fact: AccessFact) => Effect.Effect<void, StoreUnavailable, R>
): Effect.fn.Return<{ readonly note: Refusals["note"] }, never, R | Scope.Scope> {
  const { note, tell } = refusalsTo(store)
  const told = Effect.catch(tell, () => Effect.logWarning("refused logins could not be written to the audit"))
  yield* told.pipe(Effect.delay(EVERY), Effect.forever, Effect.forkScoped)
  yield* Effect.addFinalizer(() => told)
  return { note }
})
