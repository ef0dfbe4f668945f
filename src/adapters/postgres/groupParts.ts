/**
 * What callers of a group commit ask for, cut into parts that fit in a statement, and their answers. Answers are given so many in one turn
 * of the event loop: each lets a fiber run on, and hundreds of these would keep everybody waiting. Orgs take turns at these, too: who
 * has one answer does not get it after a hundred of another org's.
 */
import { type Cause, Effect } from "effect"
import type { OrgId } from "../../domain/ids.ts"
import type { QueryFailed } from "./Postgres.ts"

/** Answers of one turn of the event loop. */
const ANSWERED_AT_ONCE = 32

export interface Answers<B> {
  readonly answered: (answers: ReadonlyArray<B>) => void
  readonly failed: (cause: Cause.Cause<QueryFailed>) => void
}

/** What goes together: a call, or as much of it as a statement can hold. */
export interface Part<A, B> extends Answers<B> {
  readonly who: OrgId | null
  readonly weight: number
  readonly items: ReadonlyArray<A>
  /** The call that it is a part of; null: it is all of it. */
  readonly call: object | null
}

export interface Measures<A> {
  readonly keyOf: (item: A) => string
  readonly weightOf: (item: A) => number
}

/** Cut only where a statement, which holds `most`, is full or would have a key twice. */
export const cut = <A>(
  items: ReadonlyArray<A>,
  most: number,
  { keyOf, weightOf }: Measures<A>
): ReadonlyArray<ReadonlyArray<A>> => {
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

/** A part for each of the pieces of a call. They answer once, when the last of them is answered. */
export const partsOf = <A, B>(
  pieces: ReadonlyArray<ReadonlyArray<A>>,
  who: OrgId | null,
  { answered, failed }: Answers<B>,
  { weightOf }: Measures<A>
): ReadonlyArray<Part<A, B>> => {
  const answers = new Array<ReadonlyArray<B>>(pieces.length)
  let left = pieces.length
  return pieces.map((items, i) => ({
    items,
    who,
    call: pieces.length === 1 ? null : answers,
    weight: items.reduce((sum, item) => sum + weightOf(item), 0),
    answered: (its) => {
      answers[i] = its
      left -= 1
      if (left === 0) answered(answers.flat())
    },
    failed
  }))
}

/** What one caller waits for. */
interface Answered {
  readonly who: OrgId | null
  readonly give: () => void
}

/** Each part with its answers. Where they don't go in one turn, one of each org comes first, then a second of each. */
const answeredBy = <A, B>(parts: ReadonlyArray<Part<A, B>>, answers: ReadonlyArray<B>): ReadonlyArray<Answered> => {
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

const give = (all: ReadonlyArray<Answered>): Effect.Effect<void> => {
  for (const { give } of all.slice(0, ANSWERED_AT_ONCE)) give()
  if (all.length <= ANSWERED_AT_ONCE) return Effect.void
  return Effect.andThen(
    nextTurn,
    Effect.suspend(() => give(all.slice(ANSWERED_AT_ONCE)))
  )
}

/** Gives all parts of a statement their answers, which are in the order of the items. */
export const answer = <A, B>(parts: ReadonlyArray<Part<A, B>>, answers: ReadonlyArray<B>): Effect.Effect<void> =>
  give(answeredBy(parts, answers))

const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})
