/**
 * Many callers, one statement: items that come while a statement is under way share the next one, which starts without a timer after the
 * current turn of the event loop. Items go in their order; two with one key are never under way at once, and each part of a call waits
 * for the one before. After a class 22 error items are asked for one by one, so that a poisoned one does not fail its neighbours.
 */
import { type Cause, Deferred, Effect, Exit, type Scope } from "effect"
import type { QueryFailed } from "./Postgres.ts"

export interface Group<A, B> {
  readonly keyOf: (item: A) => string
  /** Statements, each on a connection. */
  readonly atOnce: number
  /** Weight of a statement; a heavier item goes alone. */
  readonly max: number
  readonly weightOf?: (item: A) => number
  /** Answers in the order of the items. */
  readonly run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>
}

interface Call<B> {
  readonly answers: Array<B>
  /** Items without an answer. */
  left: number
  /** Items in statements under way. */
  underWay: number
  readonly resume: (result: Effect.Effect<ReadonlyArray<B>, QueryFailed>) => void
}

interface Pending<A, B> {
  readonly item: A
  readonly nth: number
  readonly call: Call<B>
}

export const groupCommit = <A, B>({
  keyOf,
  atOnce,
  max,
  weightOf = () => 1,
  run
}: Group<A, B>): Effect.Effect<
  (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const fork = yield* Effect.context<never>().pipe(Effect.map((context) => Effect.runForkWith(context)))
    let pending: Array<Pending<A, B>> = []
    let running = 0
    let scheduled = false
    const keysUnderWay = new Set<string>()
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

    const take = (): ReadonlyArray<Pending<A, B>> => {
      const taken: Array<Pending<A, B>> = []
      const left: Array<Pending<A, B>> = []
      const held = new Set<Call<B>>()
      let room = max
      for (const one of pending) {
        const key = keyOf(one.item)
        const weight = weightOf(one.item)
        const hasRoom = weight <= room || taken.length === 0
        if (hasRoom && !held.has(one.call) && one.call.underWay === 0 && !keysUnderWay.has(key)) {
          keysUnderWay.add(key)
          room -= weight
          taken.push(one)
        } else {
          held.add(one.call)
          left.push(one)
        }
      }
      for (const { call } of taken) call.underWay += 1
      pending = left
      return taken
    }

    const start = () => {
      const taken = take()
      if (taken.length === 0) return
      running += 1
      fork(ask(taken))
      schedule()
    }

    const end = (taken: ReadonlyArray<Pending<A, B>>) => {
      running -= 1
      for (const { item, call } of taken) {
        keysUnderWay.delete(keyOf(item))
        call.underWay -= 1
      }
      if (closing && running === 0 && pending.length === 0) Deferred.doneUnsafe(closed, Exit.void)
      schedule()
    }

    const give = (taken: ReadonlyArray<Pending<A, B>>, exit: Exit.Exit<ReadonlyArray<B>, QueryFailed>) => {
      for (const [i, { nth, call }] of taken.entries()) {
        if (Exit.isFailure(exit)) call.resume(Effect.failCause(exit.cause))
        else {
          call.answers[nth] = exit.value[i]!
          call.left -= 1
          if (call.left === 0) call.resume(Effect.succeed(call.answers))
        }
      }
    }

    const asked = (taken: ReadonlyArray<Pending<A, B>>) =>
      Effect.exit(Effect.suspend(() => run(taken.map(({ item }) => item))))

    const ask = (taken: ReadonlyArray<Pending<A, B>>): Effect.Effect<void> =>
      Effect.flatMap(asked(taken), (exit) => {
        if (Exit.isFailure(exit) && taken.length > 1 && isUnreadable(exit.cause)) {
          const alone = (one: Pending<A, B>) => Effect.map(asked([one]), (its) => give([one], its))
          return Effect.andThen(
            Effect.forEach(taken, alone, { discard: true }),
            Effect.sync(() => end(taken))
          )
        }
        end(taken)
        give(taken, exit)
        return Effect.void
      })

    // Appends that were accepted are asked before the connections close.
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
            const call: Call<B> = { answers: new Array<B>(items.length), left: items.length, underWay: 0, resume }
            for (const [nth, item] of items.entries()) pending.push({ item, nth, call })
            schedule()
          })
  })

const isUnreadable = (cause: Cause.Cause<QueryFailed>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true)
