/**
 * Puts right what a check found in the queue: messages that are missing, twice or somewhere else, lines without a head, lanes that
 * sleep. The facts are never changed, and what is derived beside the queue is made again by its own means (`posthaste projections
 * rebuild`).
 */
import { Effect } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { messageOf } from "../../domain/streams.ts"
import { mendMessages } from "../deliver/mendMessages.ts"
import type { FromStore } from "../errors.ts"
import { type Looked, QueueRepair } from "../ports/QueueRepair.ts"
import type { Violation } from "./disagreements.ts"

const AT_ONCE = 500
const LINES_AT_ONCE = 1_000

const ofQueue: ReadonlySet<Violation["rule"]> = new Set(["not-in-queue", "twice-in-queue", "misplaced", "no-stream"])

/** Answers how many things were put right, and how many messages were set aside because their facts say nothing. */
export const repairQueueBy = Effect.fnUntraced(function* (violations: ReadonlyArray<Violation>) {
  const repair = yield* QueueRepair
  const suspects = violations.filter(({ rule }) => ofQueue.has(rule)).flatMap(({ stream }) => messageOf(stream) ?? [])
  const ids = [...new Set(suspects)] as ReadonlyArray<MessageId>
  let mended = 0
  let setAside = 0
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE)
    yield* repair.dropStrangers(some)
    const found = yield* mendMessages(some, { strays: true })
    mended += found.mended.length
    setAside += found.setAside.length
  }
  mended += yield* all((after) => repair.mendLines(after, LINES_AT_ONCE))
  mended += yield* all((after) => repair.mendLanes(after, LINES_AT_ONCE))
  return { mended, setAside }
})

const all = Effect.fnUntraced(function* (look: (after: string | null) => FromStore<Looked>) {
  let mended = 0
  let after: string | null = null
  do {
    const looked: Looked = yield* look(after)
    mended += looked.mended
    after = looked.next
  } while (after !== null)
  return mended
})
