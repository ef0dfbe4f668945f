/**
 * Many callers, one statement: whoever asks while a statement is under way shares the next one. Nobody waits for a timer: a
 * statement starts as soon as a connection is free, after the current turn of the event loop, so that fibers which settle in
 * the same turn go together.
 *
 * What came in one call goes in one statement, in its order, as long as a statement can hold it: two statements are under way at
 * once, and what is spread over both could be overtaken by itself.
 *
 * Two items with the same key never share a statement, nor are two under way at once; the second waits for the next. An item
 * that the server can't even read (a class 22 error) is found by asking for its batch-mates one by one: one poisoned item
 * must not fail its neighbours.
 */
import { type Cause, Deferred, Effect, Exit, type Scope } from "effect"
import type { QueryFailed } from "./Postgres.ts"

export interface Group<A, B> {
  readonly keyOf: (item: A) => string
  /** Statements under way at once; each takes a connection. */
  readonly atOnce: number
  /** Items in one statement. */
  readonly max: number
  /** Answers in the order of the items. */
  readonly run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>
}

interface Pending<A, B> {
  readonly item: A
  readonly answered: (answer: B) => void
  readonly failed: (cause: Cause.Cause<QueryFailed>) => void
}

export const groupCommit = <A, B>({
  keyOf,
  atOnce,
  max,
  run
}: Group<A, B>): Effect.Effect<
  (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const fork = yield* Effect.context<never>().pipe(Effect.map((context) => Effect.runForkWith(context)))
    /** What goes together. */
    let pending: Array<ReadonlyArray<Pending<A, B>>> = []
    let running = 0
    let scheduled = false
    const underWay = new Set<string>()
    const closed = yield* Deferred.make<void>()
    let closing = false

    /** Cut only where a statement is full or would have a key twice. */
    const togetherOf = (asked: ReadonlyArray<Pending<A, B>>): ReadonlyArray<ReadonlyArray<Pending<A, B>>> => {
      if (asked.length === 1) return [asked]
      const parts: Array<Array<Pending<A, B>>> = []
      let keys = new Set<string>()
      for (const each of asked) {
        const key = keyOf(each.item)
        if (keys.size === 0 || keys.size === max || keys.has(key)) {
          parts.push([])
          keys = new Set()
        }
        keys.add(key)
        parts.at(-1)!.push(each)
      }
      return parts
    }

    const schedule = () => {
      if (scheduled || pending.length === 0 || running >= atOnce) return
      scheduled = true
      setImmediate(() => {
        scheduled = false
        start()
      })
    }

    /** Takes what can go now; what has a key that is under way, or no room, is the first to be looked at next time. */
    const take = (): ReadonlyArray<Pending<A, B>> => {
      const taken: Array<Pending<A, B>> = []
      const left: Array<ReadonlyArray<Pending<A, B>>> = []
      for (const together of pending) {
        const isFree = together.every(({ item }) => !underWay.has(keyOf(item)))
        if (isFree && taken.length + together.length <= max) {
          for (const each of together) underWay.add(keyOf(each.item))
          taken.push(...together)
        } else left.push(together)
      }
      pending = left
      return taken
    }

    const start = () => {
      const batch = take()
      if (batch.length === 0) return
      running += 1
      fork(ask(batch)).addObserver(() => {
        running -= 1
        for (const { item } of batch) underWay.delete(keyOf(item))
        if (closing && running === 0 && pending.length === 0) Deferred.doneUnsafe(closed, Exit.void)
        schedule()
      })
      schedule()
    }

    const ask = (batch: ReadonlyArray<Pending<A, B>>): Effect.Effect<void> =>
      run(batch.map(({ item }) => item)).pipe(
        Effect.exit,
        Effect.flatMap((exit): Effect.Effect<void> => {
          if (Exit.isFailure(exit) && batch.length > 1 && isUnreadable(exit.cause)) {
            return Effect.forEach(batch, (each) => ask([each]), { discard: true })
          }
          return Effect.sync(() => {
            if (Exit.isFailure(exit)) for (const { failed } of batch) failed(exit.cause)
            else for (const [i, { answered }] of batch.entries()) answered(exit.value[i]!)
          })
        })
      )

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
            const answers = new Array<B>(items.length)
            let left = items.length
            const asked = items.map(
              (item, i): Pending<A, B> => ({
                item,
                answered: (answer) => {
                  answers[i] = answer
                  left -= 1
                  if (left === 0) resume(Effect.succeed(answers))
                },
                failed: (cause) => resume(Effect.failCause(cause))
              })
            )
            pending.push(...togetherOf(asked))
            schedule()
          })
  })

const isUnreadable = (cause: Cause.Cause<QueryFailed>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true)
