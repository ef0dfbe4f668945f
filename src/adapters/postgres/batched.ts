/**
 * Many callers, one statement: whoever asks while a statement is under way shares the next one. Nobody waits for a
 * timer. Two items with the same key never share a statement. An item the server can't even read (a class 22 error)
 * is found by asking for its batch-mates one by one: it must not fail its neighbours.
 */
import { Effect } from "effect"
import type { QueryFailed } from "./Postgres.ts"

interface Asked<A, B> {
  readonly item: A
  readonly resume: (effect: Effect.Effect<B, QueryFailed>) => void
}

export interface Batching<A, B> {
  readonly keyOf: (item: A) => string
  readonly atOnce: number
  readonly max: number
  /** Answers in the order of the items. */
  readonly run: (items: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, QueryFailed>
}

export const batched = <A, B>({ keyOf, atOnce, max, run }: Batching<A, B>) => {
  let waiting: Array<Asked<A, B>> = []
  const underWay = new Set<string>()
  let running = 0
  let scheduled = false

  const schedule = () => {
    if (scheduled || waiting.length === 0 || running >= atOnce) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      start()
    })
  }

  const take = (): ReadonlyArray<Asked<A, B>> => {
    const taken: Array<Asked<A, B>> = []
    const left: Array<Asked<A, B>> = []
    for (const each of waiting) {
      const key = keyOf(each.item)
      if (taken.length < max && !underWay.has(key)) {
        underWay.add(key)
        taken.push(each)
      } else left.push(each)
    }
    waiting = left
    return taken
  }

  const start = () => {
    const batch = take()
    if (batch.length === 0) return
    running += 1
    Effect.runFork(ask(batch)).addObserver(() => {
      running -= 1
      for (const { item } of batch) underWay.delete(keyOf(item))
      schedule()
    })
    schedule()
  }

  const ask = (batch: ReadonlyArray<Asked<A, B>>): Effect.Effect<void> =>
    Effect.matchCauseEffect(run(batch.map(({ item }) => item)), {
      onSuccess: (answers) =>
        Effect.sync(() => {
          for (const [i, { resume }] of batch.entries()) resume(Effect.succeed(answers[i]!))
        }),
      onFailure: (cause) => {
        const isUnreadable = cause.reasons.some(
          (reason) => reason._tag === "Fail" && reason.error.code?.startsWith("22") === true
        )
        if (batch.length > 1 && isUnreadable) return Effect.forEach(batch, (each) => ask([each]), { discard: true })
        return Effect.sync(() => {
          for (const { resume } of batch) resume(Effect.failCause(cause))
        })
      }
    })

  return (item: A): Effect.Effect<B, QueryFailed> =>
    Effect.callback<B, QueryFailed>((resume) => {
      waiting.push({ item, resume })
      schedule()
    })
}
