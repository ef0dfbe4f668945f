/**
 * Follows the log and publishes the facts of messages, and the dead letters among them, at least once and in the order
 * of each message: a later fact that the log shows first takes the earlier ones along. A message whose stream can't be
 * processed is parked, and its facts stay inside.
 */
import { type DateTime, Effect } from "effect"
import { deadLetterErrorOf } from "../../domain/alert/triggers.ts"
import type { MessageId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import { type StoredFact, timeline } from "../../domain/message/view.ts"
import { parking } from "../park.ts"
import { Bodies } from "../ports/Bodies.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { StoreUnavailable } from "../ports/errors.ts"
import { Followers } from "../ports/Followers.ts"
import { outageOf, StoreHealth } from "../storeHealth.ts"
import { typeOf } from "./feed.ts"
import { follow } from "./follow.ts"
import { LogReader } from "./LogReader.ts"

export interface OutgoingFact {
  readonly messageId: MessageId
  readonly version: number
  readonly at: DateTime.Utc
  readonly type: string
  /** JSON text of the kept part: it names no person. */
  readonly data: string
  readonly queued: MessageQueued
  readonly status: string
  readonly deadLetter: DeadLetter | null
}

export interface DeadLetter {
  /** JSON text; null when it was erased, or can't be read. */
  readonly body: string | null
  readonly error: string
  readonly attempts: number
}

const TASK = "publishing facts"
const AT_ONCE = 500
const KNOWN_MAX = 50_000

/** The place in the log where facts begin to go out, the first time that there is a broker. */
export const factStarts = ["now", "beginning"] as const
export type FactStart = (typeof factStarts)[number]

/** Called before the broker is first reached, so that facts of its absence go out, too. Later calls change nothing. */
export const beginFacts = Effect.fnUntraced(function* (start: FactStart) {
  const position = start === "now" ? yield* (yield* LogReader).end : null
  yield* (yield* Followers).begin("facts", position)
})

export const publishFacts = Effect.fnUntraced(function* <E, R>(
  publish: (facts: ReadonlyArray<OutgoingFact>) => Effect.Effect<unknown, E, R>
) {
  const outage = outageOf(yield* StoreHealth, TASK)
  const known = new Map<MessageId, number>()
  const step = yield* follow(
    "facts",
    AT_ONCE,
    Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
      const { answer } = yield* parking(facts, (some) => outgoingOf(some, known))
      if (answer.outgoing.length > 0) yield* publish(answer.outgoing)
      for (const [id, version] of answer.reached) {
        known.delete(id)
        known.set(id, version)
      }
      while (known.size > KNOWN_MAX) known.delete(known.keys().next().value!)
    })
  )
  return yield* step.pipe(
    Effect.tap(() => Effect.sync(outage.over)),
    Effect.catchIf(
      (error: E | StoreUnavailable): error is StoreUnavailable => error instanceof StoreUnavailable,
      (error) => Effect.andThen(outage.failed(error), Effect.sleep("1 second"))
    ),
    Effect.forever
  )
})

const outgoingOf = Effect.fnUntraced(function* (
  facts: ReadonlyArray<LoggedFact>,
  known: ReadonlyMap<MessageId, number>
) {
  const streams = yield* (yield* LogReader).streams(facts.filter(({ messageId }) => messageId !== null))
  const outgoing: Array<OutgoingFact> = []
  const reached = new Map<MessageId, number>()
  for (const { messageId, version } of facts) {
    const history = messageId === null ? undefined : streams.get(messageId)
    if (messageId === null || history === undefined) continue
    const before = reached.get(messageId) ?? known.get(messageId) ?? version - 1
    for (let next = before + 1; next <= version; next++) outgoing.push(yield* outgoingAt(messageId, history, next))
    reached.set(messageId, Math.max(before, version))
  }
  return { outgoing, reached }
})

/** One body that does not open holds up no other fact. */
const bodyOf = (messageId: MessageId) =>
  Effect.flatMap(Bodies, ({ load }) => load(messageId)).pipe(
    Effect.catchDefect((defect) =>
      Effect.logError(`the dead letter ${messageId} goes out without its body, which can't be read`, defect).pipe(
        Effect.as(null)
      )
    )
  )

const outgoingAt = Effect.fnUntraced(function* (
  messageId: MessageId,
  history: ReadonlyArray<StoredFact>,
  version: number
) {
  const { at, fact } = history[version - 1]!
  const { name, data } = toRecorded(fact)
  const queued = history[0]!.fact as MessageQueued
  const { message } = timeline(history.slice(0, version))
  const error = deadLetterErrorOf(fact)
  const outgoing: OutgoingFact = {
    ...{ messageId, version, at, data, queued },
    type: typeOf({ name }),
    status: message.status,
    deadLetter:
      error === null
        ? null
        : { body: yield* bodyOf(messageId), error: error.message, attempts: message.progress.attempt }
  }
  return outgoing
})
