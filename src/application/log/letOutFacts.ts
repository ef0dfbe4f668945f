/**
 * Follows the log and lets the facts of messages out, in the order of each message:
 *
 *   hold      the outlet, and learn where to go on
 *   read      the next facts
 *   let out   the facts of messages, and the dead letters among them; answered once they are safe outside
 *   advance   the position
 *
 * A crash before the last step repeats the earlier ones: a fact goes out at least once. A later fact of a message that the
 * log shows first, because their transactions overlapped, takes the earlier one along.
 *
 * A message whose stream can't be processed is set aside before the position moves past it, and with it all its later facts: those of
 * all other messages go out, and these once they can be read (see StreamsAside.ts).
 */
import { Clock, type DateTime, Duration, Effect } from "effect"
import { deadLetterErrorOf } from "../../domain/alert/triggers.ts"
import type { MessageId } from "../../domain/ids.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import { type StoredFact, timeline } from "../../domain/message/view.ts"
import { newHolder } from "../newHolder.ts"
import { Bodies } from "../ports/Bodies.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import { FactOutletProgress } from "../ports/FactOutletProgress.ts"
import { type AsideReader, StreamsAside } from "../ports/StreamsAside.ts"
import { untilAnswered } from "../untilAnswered.ts"
import { typeOf } from "./feed.ts"
import { LogReader } from "./LogReader.ts"
import { archived, type Blame, factsOf, processable, withoutAsides } from "./processable.ts"

/** A fact of a message, with what a consumer outside needs to choose by. */
export interface OutgoingFact {
  readonly messageId: MessageId
  readonly version: number
  readonly at: DateTime.Utc
  readonly type: string
  /** JSON text. */
  readonly data: string
  readonly queued: MessageQueued
  /** The status after it. */
  readonly status: string
  /** What it says of a dead letter; null of any other fact. */
  readonly deadLetter: DeadLetter | null
}

export interface DeadLetter {
  /** JSON text; null when it was erased, or can't be read. */
  readonly body: string | null
  readonly error: string
  readonly attempts: number
}

/** For the log. */
const TASK = "letting facts out"
const AT_ONCE = 500
const LEASE = Duration.seconds(10)
const PAUSE_OTHER = Duration.seconds(2)
/** A holder that has nothing to do says so in time. */
const NEWS_WITHIN = Duration.seconds(3)
/** Messages whose last version is remembered. */
const KNOWN_MAX = 50_000

/** The outlet as a reader that owes facts. */
const OUTLET: AsideReader = { name: "outlet", generation: 0 }
/** How often it looks whether what it owes can go out. */
const LOOK_EVERY_NANOS = Duration.toNanosUnsafe(Duration.seconds(10))
const MADE_UP_AT_ONCE = 100
const none: ReadonlyMap<MessageId, number> = new Map()

/** Where facts begin to go out, the first time that there is a broker. */
export const factStarts = ["now", "beginning"] as const
export type FactStart = (typeof factStarts)[number]

/**
 * Before the broker is reached for the first time: what happens while it is away is to go out, too. Later calls change nothing.
 */
export const beginFacts = Effect.fnUntraced(function* (start: FactStart) {
  const position = start === "now" ? yield* (yield* LogReader).end : null
  yield* (yield* FactOutletProgress).begin(position)
})

/** Runs until `letOut` fails. While the store is away it waits: that says nothing about where the facts go. */
export const letOutFacts = Effect.fnUntraced(function* <E, R>(
  letOut: (facts: ReadonlyArray<OutgoingFact>) => Effect.Effect<unknown, E, R>
) {
  const progress = yield* FactOutletProgress
  const log = yield* LogReader
  const clock = yield* Clock.Clock
  const holder = yield* newHolder
  const asides = yield* StreamsAside
  /** The last version of each message that went out from here. */
  let known = new Map<MessageId, number>()
  /** What this outlet owes, as its holder knows. */
  let aside: Map<string, Blame> | null = null
  let lookAt = 0n

  /** Lets out what is owed, as far as it can be by now. Letting out may be repeated: it is owed until it went out. */
  const makeUp = Effect.fnUntraced(function* () {
    const due = yield* untilAnswered(TASK, asides.due(OUTLET, MADE_UP_AT_ONCE))
    const streams = due.length === 0 ? new Map() : yield* untilAnswered(TASK, archived(due))
    for (const owed of due) {
      const facts = factsOf(owed, streams)
      const { answer, asides: still } = yield* untilAnswered(
        TASK,
        processable(facts, (some) => outgoingOf(some, none))
      )
      if (still.length > 0) continue
      if (answer.outgoing.length > 0) yield* letOut(answer.outgoing)
      yield* untilAnswered(TASK, asides.madeUp(OUTLET, owed))
    }
    aside = new Map(yield* untilAnswered(TASK, asides.of(OUTLET)))
  })

  for (;;) {
    const held = yield* untilAnswered(TASK, progress.hold(holder, LEASE))
    if (held === null) {
      known = new Map()
      aside = null
      yield* Effect.sleep(PAUSE_OTHER)
      continue
    }
    const now = clock.monotonicTimeNanosUnsafe()
    if (aside === null || now >= lookAt) {
      yield* makeUp()
      lookAt = now + LOOK_EVERY_NANOS
    }
    const facts = yield* untilAnswered(TASK, log.read(held.position, AT_ONCE))
    const last = facts.at(-1)
    if (last === undefined) {
      yield* Effect.timeoutOption(log.news(held.position), NEWS_WITHIN)
      continue
    }
    const before = aside!
    const { behind, others } = withoutAsides(facts, before)
    const { answer, asides: news } = yield* untilAnswered(
      TASK,
      processable(others, (some) => outgoingOf(some, known))
    )
    const { outgoing, reached } = answer
    if (outgoing.length > 0) yield* letOut(outgoing)
    yield* untilAnswered(TASK, asides.owe(OUTLET, [...news, ...behind]))
    for (const { stream, reason, detail } of news) before.set(stream, { reason, detail })
    if (yield* untilAnswered(TASK, progress.advance(holder, LEASE, held.position, last.position))) {
      for (const [id, version] of reached) {
        known.delete(id)
        known.set(id, version)
      }
      while (known.size > KNOWN_MAX) known.delete(known.keys().next().value!)
    }
  }
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
    // No message's, or of one that was forgotten meanwhile.
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
        : {
            body: yield* bodyOf(messageId),
            error: error.message,
            attempts: message.progress.attempt
          }
  }
  return outgoing
})
