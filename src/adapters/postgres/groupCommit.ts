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
 *
 * Answers are given so many in one turn of the event loop: each lets a fiber run on, and hundreds of these would keep everybody waiting.
 * Orgs take turns at these, too: who has one answer does not get it after a hundred of another org's.
 */
import { type Cause, Clock, Deferred, Effect, Exit, type Scope } from "effect"
import { Askers } from "../../application/askers.ts"
import type { OrgId } from "../../domain/ids.ts"
import type { QueryFailed } from "./Postgres.ts"

/** Answers of one turn of the event loop. */
const ANSWERED_AT_ONCE = 32

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

interface Answers<B> {
  readonly answered: (answers: ReadonlyArray<B>) => void
  readonly failed: (cause: Cause.Cause<QueryFailed>) => void
}

/** What one caller waits for. */
interface Answered {
  readonly who: OrgId | null
  readonly give: () => void
}

/** What goes together: a call, or as much of it as a statement can hold. */
interface Part<A, B> extends Answers<B> {
  readonly who: OrgId | null
  readonly weight: number
  readonly items: ReadonlyArray<A>
  /** The call that it is a part of; null: it is all of it. */
  readonly call: object | null
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

    /** Cut only where a statement is full or would have a key twice. */
    const cut = (items: ReadonlyArray<A>, most: number): ReadonlyArray<ReadonlyArray<A>> => {
      const pieces: Array<Array<A>> = []
      let keys = new Set<string>()
      let room = most
      for (const item of items) {
        const key = keyOf(item)
        if (keys.size === 0 || weightOf(item) > room || keys.has(key)) {
          pieces.push([])
          keys = new Set()
          room = most
        }
        keys.add(key)
        room -= weightOf(item)
        pieces.at(-1)!.push(item)
      }
      return pieces
    }

    /** A part for each of the pieces. They answer once, when the last of them is answered. */
    const partsOf = (
      pieces: ReadonlyArray<ReadonlyArray<A>>,
      who: OrgId | null,
      { answered, failed }: Answers<B>
    ): ReadonlyArray<Part<A, B>> => {
      const answers = new Array<ReadonlyArray<B>>(pieces.length)
      let left = pieces.length
      return pieces.map((items, i) => ({
        items,
        who,
        call: pieces.length === 1 ? null : answers,
        weight: weigh(items),
        answered: (its) => {
          answers[i] = its
          left -= 1
          if (left === 0) answered(answers.flat())
        },
        failed
      }))
    }

    const schedule = () => {
      if (scheduled || pending.length === 0 || running >= atOnce) return
      scheduled = true
      setImmediate(() => {
        scheduled = false
        start()
      })
    }

    const weigh = (items: ReadonlyArray<A>) => items.reduce((sum, item) => sum + weightOf(item), 0)

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
          const single = parts.flatMap((part) =>
            partsOf(
              Array.from(part.items, (item) => [item]),
              part.who,
              part
            )
          )
          return Effect.andThen(
            Effect.forEach(single, (part) => ask([part], () => {}), { discard: true }),
            Effect.sync(ended)
          )
        }
        ended()
        if (Exit.isSuccess(exit)) return answer(answeredBy(parts, exit.value))
        for (const { failed } of parts) failed(exit.cause)
        return Effect.void
      })
    }

    /** Each part with its answers. Where they don't go in one turn, one of each org comes first, then a second of each. */
    const answeredBy = (parts: ReadonlyArray<Part<A, B>>, answers: ReadonlyArray<B>): ReadonlyArray<Answered> => {
      let from = 0
      const all = parts.map(({ who, items, answered }) => {
        const its = answers.slice(from, from + items.length)
        from += items.length
        return { who, give: () => answered(its) }
      })
      if (all.length <= ANSWERED_AT_ONCE) return all
      const places = new Map<OrgId | null, number>()
      const placed = all.map((one) => {
        const place = places.get(one.who) ?? 0
        places.set(one.who, place + 1)
        return { one, place }
      })
      return placed.sort((a, b) => a.place - b.place).map(({ one }) => one)
    }

    const answer = (all: ReadonlyArray<Answered>): Effect.Effect<void> => {
      for (const { give } of all.slice(0, ANSWERED_AT_ONCE)) give()
      if (all.length <= ANSWERED_AT_ONCE) return Effect.void
      return Effect.andThen(
        nextTurn,
        Effect.suspend(() => answer(all.slice(ANSWERED_AT_ONCE)))
      )
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
            else
              pending.push(...partsOf(cut(items, who !== null && askers.areSeveral(now) ? ofOne : max), who, answers))
            schedule()
          })
  })

const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

const isUnreadable = (cause: Cause.Cause<QueryFailed>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true)
