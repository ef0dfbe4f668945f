/**
 * The end of the log: its last facts, in memory for all readers there. The store is asked while a reader waits, and by
 * a reader that wants more than is kept.
 */
import { Clock, Duration, Effect, Latch, Semaphore } from "effect"
import type { EventStore, LoggedFact, Position } from "../ports/EventStore.ts"
import type { StoreUnavailable } from "../ports/errors.ts"
import { Pulse } from "../ports/Pulse.ts"

const RECENT_MAX = 20_000
const TAIL_AT_ONCE = 2_000
const PAGES_MAX = 4
const FRESH = Duration.toMillis("20 millis")
const LOOK_MIN_MS = 50
/** The delay when a ring is lost. */
const LOOK_MAX_MS = 2_000
/** The longest wait of a reader at a position that the tail has not come to. */
const ELSEWHERE_MAX = "30 seconds"

export const tail = Effect.fnUntraced(function* (store: EventStore["Service"]) {
  const scope = yield* Effect.scope
  const { wait } = (yield* Pulse).listener("log")
  const one = Semaphore.makeUnsafe(1)
  const grown = Latch.makeUnsafe()
  // Facts are numbered from 1 in the order they are read here; `first` is the number of the oldest fact in memory.
  const facts: Array<LoggedFact> = []
  const numbers = new Map<Position | null, number>()
  let first = 1
  let head: Position | null = null
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasBegun = false
  let isWatched = false

  /**
   * The last number at the time of a read from a position without one: another process has come further, or the
   * position is far back.
   */
  const elsewhere = new Map<Position | null, number>()

  const last = () => first + facts.length - 1
  const isAtEnd = (position: Position | null) => (numbers.get(position) ?? elsewhere.get(position)) === last()

  /** Readers at the same place get the same page, and with it its lookups (lookups.ts). */
  const pages: Array<{ readonly from: number; readonly page: ReadonlyArray<LoggedFact> }> = []
  const pageFrom = (from: number, limit: number): ReadonlyArray<LoggedFact> => {
    const length = Math.min(limit, last() + 1 - from)
    const known = pages.find((each) => each.from === from && each.page.length === length)
    if (known !== undefined) return known.page
    const page = facts.slice(from - first, from - first + limit)
    if (length === 0) return page
    if (pages.unshift({ from, page }) > PAGES_MAX) pages.pop()
    return page
  }

  const look = one.withPermits(1)(
    Effect.gen(function* () {
      if (!hasBegun) {
        head = (yield* store.extent).head
        numbers.set(head, 0)
        hasBegun = true
      }
      const now = yield* Clock.currentTimeMillis
      // Clocks jump, also backwards.
      if (Math.abs(now - lookedAt) < FRESH) return
      const found = yield* store.readAll(head, TAIL_AT_ONCE)
      lookedAt = found.length === TAIL_AT_ONCE ? Number.NEGATIVE_INFINITY : now
      if (found.length === 0) return
      for (const fact of found) {
        facts.push(fact)
        numbers.set(fact.position, last())
      }
      head = found.at(-1)!.position
      elsewhere.clear()
      // Not for every batch: moving the whole array costs.
      if (facts.length > 2 * RECENT_MAX) {
        for (const { position } of facts.splice(0, facts.length - RECENT_MAX)) numbers.delete(position)
        first = numbers.get(facts[0]!.position)!
      }
      yield* grown.release
    })
  )

  /** Null for a position that is not near the end. An answer below the limit reaches the end of the log. */
  const after = Effect.fnUntraced(function* (position: Position | null, limit: number) {
    if (!hasBegun || (numbers.get(position) ?? Number.NEGATIVE_INFINITY) + limit > last()) yield* look
    const number = numbers.get(position)
    if (number === undefined) elsewhere.set(position, last())
    return number === undefined || number + 1 < first ? null : pageFrom(number + 1, limit)
  })

  let waiting = 0
  let pause = LOOK_MIN_MS
  /**
   * Looks when the log was rung, and now and then. Facts committed beside an older open transaction are read once that
   * has ended, so the pauses after a ring begin short.
   */
  const watch = Effect.gen(function* () {
    const before = last()
    yield* Effect.ignore(look)
    if (last() > before) {
      pause = LOOK_MIN_MS
      return yield* Effect.sleep(LOOK_MIN_MS)
    }
    pause = (yield* wait(pause)) ? LOOK_MIN_MS : Math.min(pause * 1.5, LOOK_MAX_MS)
  }).pipe(
    Effect.repeat({ while: () => waiting > 0 }),
    // However the watch ends, no reader may wait for ever.
    Effect.ensuring(
      Effect.suspend(() => {
        isWatched = false
        return grown.release
      })
    )
  )

  const news = (position: Position | null): Effect.Effect<void, StoreUnavailable> =>
    Effect.suspend(() => {
      if (!isAtEnd(position)) return Effect.void
      waiting++
      const begin = isWatched ? Effect.void : Effect.forkIn(watch, scope)
      isWatched = true
      const wait = numbers.has(position) ? grown.await : Effect.timeoutOption(grown.await, ELSEWHERE_MAX)
      return begin.pipe(Effect.andThen(wait), Effect.ensuring(Effect.sync(() => waiting--)))
    })

  const end = Effect.map(look, () => head)

  /** Readers that are behind read from the store again. Numbers go on. */
  const forget = (): void => {
    first = last() + 1
    facts.length = 0
    pages.length = 0
    numbers.clear()
    elsewhere.clear()
    if (hasBegun) numbers.set(head, last())
  }

  return { after, news, end, forget }
})
