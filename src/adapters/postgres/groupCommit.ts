/**
 * Many callers, one statement: whoever asks while a statement is under way shares the next one. Nobody waits for a timer: a
 * statement starts as soon as a connection is free, after the current turn of the event loop, so that fibers which settle in
 * the same turn go together.
 *
 * What came in one call goes in one statement, in its order, as long as a statement can hold it. Two statements are under way at once, so
 * of a call that was cut each part waits for the one before.
 *
 * Two items with the same key never share a statement, nor are two under way at once; the second waits for the next. An item
 * that the server can't even read (a class 22 error) is found by asking for its batch-mates one by one: one poisoned item
 * must not fail its neighbours.
 *
 * While several orgs ask, each has so much under way and no more: a large statement is short again, and what one org brings never
 * takes all statements. What has no room in a statement goes before those whose orgs had a part in it, however much these bring.
 */
import { type Cause, Clock, Deferred, Effect, Exit, type Scope } from "effect"
import { Askers } from "../../application/askers.ts"
import type { OrgId } from "../../domain/ids.ts"
import { type Answers, answer, cut, type Part, partsOf } from "./groupParts.ts"
import type { QueryFailed } from "./Postgres.ts"

export interface Group<A, B> {
  readonly keyOf: (item: A) => string
  /** Whose it is, and all that came with it; null: nobody's. Absent: all of them are. */
  readonly orgOf?: (item: A) => OrgId | null
  /** Statements under way at once; each takes a connection. */
  readonly atOnce: number
  /** What the items of one statement may weigh; what weighs more goes alone. */
  readonly max: number
  /** What the items of one org under way may weigh while others ask too; what weighs more goes alone. */
  readonly ofOne?: number
  /** 1 unless told otherwise. */
  readonly weightOf?: (item: A) => number
  /** Answers in the order of the items. */
  readonly run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>
}

export const groupCommit = <A, B>({
  keyOf,
  orgOf = () => null,
  atOnce,
  max,
  ofOne = max,
  weightOf = () => 1,
  run
}: Group<A, B>): Effect.Effect<
  (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const fork = yield* Effect.context<never>().pipe(Effect.map((context) => Effect.runForkWith(context)))
    const measures = { keyOf, weightOf }
    let pending: Array<Part<A, B>> = []
    let running = 0
    let scheduled = false
    const underWay = new Set<string>()
    const callsUnderWay = new Set<object>()
    const weightUnderWay = new Map<OrgId, number>()
    const askers = yield* Askers
    const clock = yield* Clock.Clock
    const nowMs = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    /** Whose parts the last statement holds. */
    let served: ReadonlySet<OrgId | null> = new Set()
    const closed = yield* Deferred.make<void>()
    let closing = false

    const schedule = () => {
      if (scheduled || pending.length === 0 || running >= atOnce) return
      scheduled = true
      setImmediate(() => {
        scheduled = false
        start()
      })
    }

    const hasShare = ({ who, weight }: Part<A, B>): boolean => {
      const own = who === null ? 0 : (weightUnderWay.get(who) ?? 0)
      return own === 0 || own + weight <= ofOne
    }

    const count = ({ who, weight }: Part<A, B>, change: 1 | -1) => {
      if (who === null) return
      const own = (weightUnderWay.get(who) ?? 0) + change * weight
      if (own === 0) weightUnderWay.delete(who)
      else weightUnderWay.set(who, own)
    }

    /** Those who had no part in the last statement come first. What one org asked for stays in its order. */
    const inTurn = (): ReadonlyArray<Part<A, B>> => [
      ...pending.filter(({ who }) => !served.has(who)),
      ...pending.filter(({ who }) => served.has(who))
    ]

    /** Takes what can go now; what has a key that is under way, or no room, is the first to be looked at next time. */
    const take = (): ReadonlyArray<Part<A, B>> => {
      const taken: Array<Part<A, B>> = []
      const left: Array<Part<A, B>> = []
      const isShared = askers.areSeveral(nowMs())
      const callsBefore = new Set(callsUnderWay)
      let room = max
      for (const part of isShared ? inTurn() : pending) {
        const { call } = part
        const isNext = call === null || !callsBefore.has(call)
        if (call !== null) callsBefore.add(call)
        const hasRoom = part.weight <= room || taken.length === 0
        const mayGo = isNext && hasRoom && (!isShared || hasShare(part))
        if (mayGo && part.items.every((item) => !underWay.has(keyOf(item)))) {
          for (const item of part.items) underWay.add(keyOf(item))
          if (call !== null) callsUnderWay.add(call)
          count(part, 1)
          room -= part.weight
          taken.push(part)
        } else left.push(part)
      }
      pending = left
      if (taken.length > 0) served = new Set(taken.map(({ who }) => who))
      return taken
    }

    const start = () => {
      const parts = take()
      if (parts.length === 0) return
      running += 1
      const ended = () => {
        running -= 1
        for (const part of parts) {
          count(part, -1)
          if (part.call !== null) callsUnderWay.delete(part.call)
          for (const item of part.items) underWay.delete(keyOf(item))
        }
        if (closing && running === 0 && pending.length === 0) Deferred.doneUnsafe(closed, Exit.void)
        schedule()
      }
      fork(ask(parts, ended))
      schedule()
    }

    /** Calls `ended` when the connection is free, before the answers are given. */
    const ask = (parts: ReadonlyArray<Part<A, B>>, ended: () => void): Effect.Effect<void> => {
      const items = parts.flatMap((part) => part.items)
      return Effect.flatMap(Effect.exit(Effect.suspend(() => run(items))), (exit): Effect.Effect<void> => {
        if (Exit.isFailure(exit) && items.length > 1 && isUnreadable(exit.cause)) {
          const single = parts.flatMap((part) => {
            const pieces = part.items.map((item) => [item])
            return partsOf(pieces, part.who, part, measures)
          })
          return Effect.andThen(
            Effect.forEach(single, (part) => ask([part], () => {}), { discard: true }),
            Effect.sync(ended)
          )
        }
        ended()
        if (Exit.isSuccess(exit)) return answer(parts, exit.value)
        for (const { failed } of parts) failed(exit.cause)
        return Effect.void
      })
    }

    // What was accepted is asked before the connections close.
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closing = true
        return running === 0 && pending.length === 0 ? Effect.void : Deferred.await(closed)
      })
    )

    return (items) =>
      items.length === 0
        ? Effect.succeed([])
        : Effect.callback<ReadonlyArray<B>, QueryFailed>((resume) => {
            const answers: Answers<B> = {
              answered: (answers) => resume(Effect.succeed(answers)),
              failed: (cause) => resume(Effect.failCause(cause))
            }
            const who = orgOf(items[0]!)
            const now = nowMs()
            if (who !== null) askers.asked(who, now)
            // An attempt's start and its outcome come alone, and are most of what comes.
            if (items.length === 1) pending.push({ items, who, call: null, weight: weightOf(items[0]!), ...answers })
            else {
              const pieces = cut(items, who !== null && askers.areSeveral(now) ? ofOne : max, measures)
              pending.push(...partsOf(pieces, who, answers, measures))
            }
            schedule()
          })
  })

const isUnreadable = (cause: Cause.Cause<QueryFailed>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true)
