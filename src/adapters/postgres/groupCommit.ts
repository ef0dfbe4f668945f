/**
 * Group commit: whoever appends while a flush is under way shares the next one. Nobody waits for a timer: a
 * flush starts as soon as a connection is free, after the current turn of the event loop, so that fibers
 * which settle in the same turn go together.
 *
 * One stream appears at most once in a flush; a second entry for it waits for the next. An entry the server
 * can't even read (a class 22 error) is found by writing its flush-mates one by one: one poisoned entry must
 * not fail its neighbours.
 */
import { type Cause, Deferred, Effect, Exit, type Scope } from "effect"
import type { Append, AppendResult } from "../../application/ports/EventStore.ts"
import type { QueryFailed } from "./Postgres.ts"

type Flush = (entries: ReadonlyArray<Append>) => Effect.Effect<ReadonlyArray<AppendResult>, QueryFailed>
interface Pending {
  readonly entry: Append
  readonly written: (result: AppendResult) => void
  readonly failed: (cause: Cause.Cause<QueryFailed>) => void
}

const FLUSHES_AT_ONCE = 2
const ENTRIES_PER_FLUSH = 1_000

export const groupCommit = (
  flush: Flush
): Effect.Effect<
  (entries: ReadonlyArray<Append>) => Effect.Effect<ReadonlyArray<AppendResult>, QueryFailed>,
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const run = yield* Effect.context<never>().pipe(Effect.map((context) => Effect.runForkWith(context)))
    let pending: Array<Pending> = []
    let underWay = 0
    let scheduled = false
    const flushing = new Set<string>()
    const closed = yield* Deferred.make<void>()
    let closing = false

    const schedule = () => {
      if (scheduled || pending.length === 0 || underWay >= FLUSHES_AT_ONCE) return
      scheduled = true
      setImmediate(() => {
        scheduled = false
        start()
      })
    }

    /** Takes what can go now; entries of a stream that is being written stay for the next flush. */
    const take = (): ReadonlyArray<Pending> => {
      const taken: Array<Pending> = []
      const left: Array<Pending> = []
      for (const each of pending) {
        const stream = each.entry.messageId
        if (taken.length < ENTRIES_PER_FLUSH && !flushing.has(stream)) {
          flushing.add(stream)
          taken.push(each)
        } else left.push(each)
      }
      pending = left
      return taken
    }

    const start = () => {
      if (underWay >= FLUSHES_AT_ONCE) return
      const batch = take()
      if (batch.length === 0) return
      underWay += 1
      const fiber = run(write(batch))
      fiber.addObserver(() => {
        underWay -= 1
        for (const each of batch) flushing.delete(each.entry.messageId)
        if (closing && underWay === 0 && pending.length === 0) Deferred.doneUnsafe(closed, Exit.void)
        schedule()
      })
      schedule()
    }

    const write = (batch: ReadonlyArray<Pending>): Effect.Effect<void> =>
      flush(batch.map(({ entry }) => entry)).pipe(
        Effect.exit,
        Effect.flatMap((exit): Effect.Effect<void> => {
          if (Exit.isFailure(exit) && batch.length > 1 && isUnreadable(exit)) {
            return Effect.forEach(batch, (each) => write([each]), { discard: true })
          }
          return Effect.sync(() => {
            if (Exit.isFailure(exit)) for (const { failed } of batch) failed(exit.cause)
            else for (const [i, { written }] of batch.entries()) written(exit.value[i]!)
          })
        })
      )

    // What was accepted for writing is written before the connections close.
    yield* Effect.addFinalizer(() =>
      Effect.suspend(() => {
        closing = true
        return underWay === 0 && pending.length === 0 ? Effect.void : Deferred.await(closed)
      })
    )

    return (entries) =>
      Effect.callback<ReadonlyArray<AppendResult>, QueryFailed>((resume) => {
        const results = new Array<AppendResult>(entries.length)
        let left = entries.length
        entries.forEach((entry, i) => {
          pending.push({
            entry,
            written: (result) => {
              results[i] = result
              left -= 1
              if (left === 0) resume(Effect.succeed(results))
            },
            failed: (cause) => resume(Effect.failCause(cause))
          })
        })
        schedule()
      })
  })

const isUnreadable = (exit: Exit.Exit<unknown, QueryFailed>): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some((reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true)
