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
  /** What the items of one statement may weigh; what weighs more goes alone. */
  readonly max: number
  /** 1 unless told otherwise. */
  readonly weightOf?: (item: A) => number
  /** Answers in the order of the items. */
  readonly run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>
}

interface Answers<B> {
  readonly answered: (answers: ReadonlyArray<B>) => void
  readonly failed: (cause: Cause.Cause<QueryFailed>) => void
}

/** What goes together: a call, or as much of it as a statement can hold. */
interface Part<A, B> extends Answers<B> {
  readonly items: ReadonlyArray<A>
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
    let pending: Array<Part<A, B>> = []
    let running = 0
    let scheduled = false
    const underWay = new Set<string>()
    const closed = yield* Deferred.make<void>()
    let closing = false

    /** Cut only where a statement is full or would have a key twice. */
    const cut = (items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
      const pieces: Array<Array<A>> = []
      let keys = new Set<string>()
      let room = max
      for (const item of items) {
        const key = keyOf(item)
        if (keys.size === 0 || weightOf(item) > room || keys.has(key)) {
          pieces.push([])
          keys = new Set()
          room = max
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
      { answered, failed }: Answers<B>
    ): ReadonlyArray<Part<A, B>> => {
      const answers = new Array<ReadonlyArray<B>>(pieces.length)
      let left = pieces.length
      return pieces.map((items, i) => ({
        items,
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

    /** Takes what can go now; what has a key that is under way, or no room, is the first to be looked at next time. */
    const take = (): ReadonlyArray<Part<A, B>> => {
      const taken: Array<Part<A, B>> = []
      const left: Array<Part<A, B>> = []
      let room = max
      for (const part of pending) {
        const { items } = part
        const weight = items.reduce((sum, item) => sum + weightOf(item), 0)
        const hasRoom = weight <= room || taken.length === 0
        if (hasRoom && items.every((item) => !underWay.has(keyOf(item)))) {
          for (const item of items) underWay.add(keyOf(item))
          room -= weight
          taken.push(part)
        } else left.push(part)
      }
      pending = left
      return taken
    }

    const start = () => {
      const parts = take()
      if (parts.length === 0) return
      running += 1
      fork(ask(parts)).addObserver(() => {
        running -= 1
        for (const { items } of parts) for (const item of items) underWay.delete(keyOf(item))
        if (closing && running === 0 && pending.length === 0) Deferred.doneUnsafe(closed, Exit.void)
        schedule()
      })
      schedule()
    }

    const ask = (parts: ReadonlyArray<Part<A, B>>): Effect.Effect<void> => {
      const items = parts.flatMap((part) => part.items)
      return Effect.flatMap(Effect.exit(Effect.suspend(() => run(items))), (exit): Effect.Effect<void> => {
        if (Exit.isSuccess(exit)) {
          let from = 0
          for (const part of parts) {
            part.answered(exit.value.slice(from, from + part.items.length))
            from += part.items.length
          }
        } else if (items.length > 1 && isUnreadable(exit.cause)) {
          const single = parts.flatMap((part) =>
            partsOf(
              Array.from(part.items, (item) => [item]),
              part
            )
          )
          return Effect.forEach(single, (part) => ask([part]), { discard: true })
        } else for (const { failed } of parts) failed(exit.cause)
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
            const whole: Part<A, B> = {
              items,
              answered: (answers) => resume(Effect.succeed(answers)),
              failed: (cause) => resume(Effect.failCause(cause))
            }
            // An attempt's start and its outcome come alone, and are most of what comes.
            if (items.length === 1) pending.push(whole)
            else pending.push(...partsOf(cut(items), whole))
            schedule()
          })
  })

const isUnreadable = (cause: Cause.Cause<QueryFailed>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true)
