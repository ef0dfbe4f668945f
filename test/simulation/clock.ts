/**
 * Simulated time. It stands still while anything can run and then jumps to the next thing that is due, so
 * an hour of waiting costs nothing.
 *
 * The timeline is the true time, in milliseconds since the world began, and the store's clock. A process
 * sees it through a wall clock of its own, which may be wrong and may jump; its sleeps are not affected.
 */
import { type Clock, Duration, Effect } from "effect"
import type { Process } from "./process.ts"

/** When the world begins, for everything that shows a date. */
export const EPOCH = Date.UTC(2026, 0, 1)

interface Due {
  readonly at: number
  /** Things due at the same time come in the order they were put in. */
  readonly order: number
  readonly run: () => void
  cancelled: boolean
}

const isBefore = (a: Due, b: Due) => a.at < b.at || (a.at === b.at && a.order < b.order)

export class Timeline {
  now = 0
  #order = 0
  /** A binary heap, the earliest first. */
  readonly #heap: Array<Due> = []

  /** Runs `run` after `delay` milliseconds; the answer cancels it. */
  after(delay: number, run: () => void): () => void {
    const due: Due = { at: this.now + Math.max(0, delay), order: this.#order++, run, cancelled: false }
    const heap = this.#heap
    let place = heap.push(due) - 1
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isBefore(due, heap[parent]!)) break
      heap[place] = heap[parent]!
      place = parent
    }
    heap[place] = due
    return () => {
      due.cancelled = true
    }
  }

  /** Moves time to the next thing that is due and does it. False when nothing is. */
  advance(): boolean {
    for (;;) {
      const due = this.#takeFirst()
      if (due === undefined) return false
      if (due.cancelled) continue
      this.now = due.at
      due.run()
      return true
    }
  }

  #takeFirst(): Due | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return first
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1
      if (!isBefore(heap[child]!, last)) break
      heap[place] = heap[child]!
      place = child
    }
    heap[place] = last
    return first
  }
}

const nanos = (millis: number) => BigInt(Math.floor(millis * 1_000_000))

const clock = (
  wall: () => number,
  monotonic: () => number,
  sleep: (millis: number) => Effect.Effect<void>
): Clock.Clock => ({
  currentTimeMillisUnsafe: () => Math.floor(wall()),
  currentTimeMillis: Effect.sync(() => Math.floor(wall())),
  currentTimeNanosUnsafe: () => nanos(wall()),
  currentTimeNanos: Effect.sync(() => nanos(wall())),
  monotonicTimeNanosUnsafe: () => nanos(monotonic()),
  monotonicTimeNanos: Effect.sync(() => nanos(monotonic())),
  sleep: (duration) => sleep(Duration.toMillis(duration))
})

/** The store's clock: always right. Nothing sleeps in the store. */
export const storeClock = (timeline: Timeline): Clock.Clock =>
  clock(
    () => EPOCH + timeline.now,
    () => timeline.now,
    () => Effect.die(new Error("the store does not sleep"))
  )

export const processClock = (timeline: Timeline, process: Process): Clock.Clock =>
  clock(
    () => EPOCH + timeline.now + process.wallOffset,
    () => timeline.now,
    (millis) =>
      Effect.callback<void>((resume) => {
        if (!Number.isFinite(millis)) return
        const cancel = timeline.after(millis, () => process.schedule(() => resume(Effect.void)))
        return Effect.sync(cancel)
      })
  )
