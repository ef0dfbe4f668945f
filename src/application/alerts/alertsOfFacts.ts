/**
 * From facts to alerts, and to whom. Decided by the facts, the times they carry and what was told before: whoever
 * reads the same facts from the same place decides the same.
 *
 * A target hears of its own org, of what it asked for, and of what happened after it was made and not days ago. Nobody hears of a
 * destination that alerts are sent to, or were until it was removed: so there is never an alert about an alert.
 */
import { DateTime, Effect, Result } from "effect"
import {
  type Alert,
  type AlertEvent,
  type AlertedDestination,
  circuitClosed,
  circuitOpened,
  deadLetter,
  oldestDueExceeded,
  oldestDueRecovered
} from "../../domain/alert/alert.ts"
import { circuitNews, deadLetterErrorOf, isNews, mayAlert, mayTellAgain } from "../../domain/alert/triggers.ts"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import { fromRecorded as circuitFact } from "../../domain/circuit/recorded.ts"
import { DestinationId, type MessageId, type OrgId } from "../../domain/ids.ts"
import type { DeliveryError } from "../../domain/message/facts.ts"
import { fromRecorded as messageFact } from "../../domain/message/recorded.ts"
import type { OverdueFact } from "../../domain/overdue/facts.ts"
import { fromRecorded as overdueFact } from "../../domain/overdue/recorded.ts"
import { AlertProgress, type Notice } from "../ports/AlertProgress.ts"
import { Channels } from "../ports/Channels.ts"
import { Circuits } from "../ports/Circuits.ts"
import { Destinations } from "../ports/Destinations.ts"
import { EventStore, type LoggedFact, type Stream } from "../ports/EventStore.ts"
import type { AlertTarget } from "./alertTargets.ts"
import type { Raised } from "./raiseAlerts.ts"

/** What a fact is about, as far as alerts go. */
type Occasion =
  | { readonly type: "circuit"; readonly destination: DestinationId; readonly fact: CircuitFact }
  | {
      readonly type: "death"
      readonly destination: DestinationId
      readonly messageId: MessageId
      readonly error: DeliveryError
    }
  | {
      readonly type: "overdue"
      /** Null when it is over. */
      readonly destination: DestinationId | null
      readonly target: DestinationId
      readonly fact: OverdueFact
    }

/** In the order of the facts, with the notices to keep of them. */
export const alertsOfFacts = Effect.fnUntraced(function* (
  facts: ReadonlyArray<LoggedFact>,
  targets: ReadonlyArray<AlertTarget>
) {
  const now = yield* DateTime.now
  const worthy = facts.filter(({ name, at }) => mayAlert(name) && isNews(at, now))
  const destinations = yield* destinationsOf(worthy)
  const occasions = worthy.flatMap((logged) => {
    const occasion = occasionOf(logged, destinations)
    return occasion === null ? [] : [{ logged, occasion }]
  })
  const ids = occasions.flatMap(({ occasion: { destination } }) => destination ?? [])
  const subjects = yield* subjectsOf([...new Set(ids)])
  const silences = yield* silencesOf([...new Set(destinations.values())])

  const raised: Array<Raised> = []
  for (const { logged, occasion } of occasions) {
    const origin = `${logged.stream}:${logged.version}`
    const subject = occasion.destination === null ? null : (subjects.get(occasion.destination) ?? null)
    if (occasion.type === "overdue") {
      const target = targets.find(({ id }) => id === occasion.target)
      if (target === undefined) continue
      raised.push({ target, alert: overdueAlert(target, occasion.fact, subject, logged), origin })
    } else if (subject !== null && occasion.type === "circuit") {
      const alert = yield* circuitAlert(subject, occasion.fact, logged)
      if (alert === null) continue
      raised.push(...hearing(targets, "circuit", subject, logged).map((target) => ({ target, alert, origin })))
      // Whoever removed a destination knows what becomes of its messages.
    } else if (subject !== null && occasion.type === "death" && !subject.removed) {
      const alert = deathAlert(subject, occasion, logged)
      for (const target of hearing(targets, "deadLetter", subject, logged)) {
        const notice = { target: target.id, destination: subject.id, at: logged.at }
        if (silences.breaks(notice)) raised.push({ target, alert, origin })
      }
    }
  }
  return { raised, notices: silences.news() }
})

const CIRCUIT = "circuit-"
const OVERDUE = "overdue-"

const occasionOf = (logged: LoggedFact, destinations: ReadonlyMap<MessageId, DestinationId>): Occasion | null => {
  const { stream, messageId } = logged
  if (messageId !== null) {
    const error = deadLetterErrorOf(Result.getOrThrow(messageFact(logged)))
    const destination = destinations.get(messageId)
    return error === null || destination === undefined ? null : { type: "death", destination, messageId, error }
  }
  if (stream.startsWith(CIRCUIT)) {
    const destination = DestinationId.make(stream.slice(CIRCUIT.length))
    return { type: "circuit", destination, fact: Result.getOrThrow(circuitFact(logged)) }
  }
  if (stream.startsWith(OVERDUE)) {
    const fact = Result.getOrThrow(overdueFact(logged))
    const destination = fact.type === "OverdueBegan" ? fact.destination : null
    return { type: "overdue", destination, target: DestinationId.make(stream.slice(OVERDUE.length)), fact }
  }
  return null
}

/** Of the messages among these facts that are not forgotten. */
const destinationsOf = Effect.fnUntraced(function* (worthy: ReadonlyArray<LoggedFact>) {
  const ids = [...new Set(worthy.flatMap(({ messageId }) => messageId ?? []))]
  const streams: ReadonlyMap<MessageId, Stream> =
    ids.length === 0 ? new Map() : yield* (yield* EventStore).loadMany(ids)
  return new Map(
    [...streams].flatMap(([id, { facts }]) => {
      const first = facts[0]?.fact
      return first?.type === "MessageQueued" ? [[id, first.destination] as const] : []
    })
  )
})

const hearing = (
  targets: ReadonlyArray<AlertTarget>,
  event: AlertEvent,
  { orgId }: AlertSubject,
  { at }: LoggedFact
): ReadonlyArray<AlertTarget> =>
  targets.filter(
    (target) =>
      target.orgId === orgId && target.events.includes(event) && DateTime.isGreaterThanOrEqualTo(at, target.createdAt)
  )

/** A destination that can be alerted about. */
interface AlertSubject extends AlertedDestination {
  readonly orgId: OrgId
  readonly removed: boolean
}

const subjectsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<DestinationId>) {
  const channels = yield* Channels
  const found = yield* (yield* Destinations).among(ids)
  return new Map(
    [...found.values()].flatMap(({ id, orgId, channel, settings, alerting, removed }) => {
      if (alerting !== null) return []
      const noun = channels.get(channel)?.noun ?? `${channel} destination`
      const url = "url" in settings && typeof settings.url === "string" ? URL.parse(settings.url) : null
      return [[id, { id, orgId, channel, noun, origin: url?.origin ?? null, removed } satisfies AlertSubject]]
    })
  )
})

const circuitAlert = Effect.fnUntraced(function* (
  subject: AlertSubject,
  fact: CircuitFact,
  { at, version }: LoggedFact
) {
  const about = { orgId: subject.orgId, destination: subject, at }
  if (fact.type === "CircuitOpened") return circuitOpened(about, fact)
  // What a reset means to people depends on what came before it.
  const history =
    fact.type === "CircuitReset"
      ? (yield* (yield* Circuits).load(subject.id)).facts.slice(0, version).map((dated) => dated.fact)
      : [fact]
  return circuitNews(history) === "closed" ? circuitClosed(about) : null
})

const deathAlert = (
  subject: AlertSubject,
  { messageId, error }: Extract<Occasion, { type: "death" }>,
  { at }: LoggedFact
): Alert => deadLetter({ orgId: subject.orgId, destination: subject, at }, messageId, error)

const overdueAlert = (
  { id, orgId }: AlertTarget,
  fact: OverdueFact,
  subject: AlertSubject | null,
  { at }: LoggedFact
): Alert => {
  const watched = { orgId, target: id, at }
  if (fact.type === "OverdueEnded") return oldestDueRecovered(watched)
  const { messageId, dueAt, limitSeconds } = fact
  const destination = subject === null ? null : subject
  return oldestDueExceeded(watched, { destination, messageId, limitSeconds, dueAt: DateTime.formatIso(dueAt) })
}

/** Who was told of a dead letter of which of these destinations last, and what is added to that here. */
const silencesOf = Effect.fnUntraced(function* (destinations: ReadonlyArray<DestinationId>) {
  const known = destinations.length === 0 ? [] : yield* (yield* AlertProgress).notices(destinations)
  const keyOf = ({ target, destination }: Notice) => `${target} ${destination}`
  const last = new Map(known.map((notice) => [keyOf(notice), notice.at]))
  const news = new Map<string, Notice>()
  return {
    /** True at most once an hour of the facts' own time. */
    breaks: (notice: Notice): boolean => {
      const key = keyOf(notice)
      if (!mayTellAgain(last.get(key) ?? null, notice.at)) return false
      last.set(key, notice.at)
      news.set(key, notice)
      return true
    },
    news: (): ReadonlyArray<Notice> => [...news.values()]
  }
})
