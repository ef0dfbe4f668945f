/**
 * Makes the alerts of facts, each for one target. Facts, their times and earlier notices decide, so the same facts
 * always make the same alerts. A target gets alerts about its org, its events, and facts after its creation that are at
 * most a day old; none is about an alert target.
 */
import { DateTime, Effect, Result } from "effect"
import {
  type AlertEvent,
  type AlertedDestination,
  circuitClosed,
  circuitOpened,
  commandRefused,
  conditionAlert,
  deadLetter,
  destinationDisabled,
  destinationEnabled
} from "../../domain/alert/alert.ts"
import { circuitNews, deadLetterErrorOf, isRecent, mayAlert, mayAlertAgain } from "../../domain/alert/triggers.ts"
import type { CircuitFact } from "../../domain/circuit/facts.ts"
import { fromRecorded as circuitFact } from "../../domain/circuit/facts.ts"
import type { CommandFact } from "../../domain/command/facts.ts"
import { fromRecorded as commandFact } from "../../domain/command/facts.ts"
import { type ConditionFact, fromRecorded as conditionFact, targetOf } from "../../domain/condition/facts.ts"
import type { DeliveryError } from "../../domain/delivery/DeliveryError.ts"
import { fromRecorded as configurationFact, isConfigurationFact } from "../../domain/destination/facts.ts"
import { DestinationId, type MessageId, type OrgId } from "../../domain/ids.ts"
import { fromRecorded as messageFact } from "../../domain/message/recorded.ts"
import { UnreadableFact } from "../../domain/recorded.ts"
import { Channels } from "../ports/Channels.ts"
import { Destinations, urlIn } from "../ports/Destinations.ts"
import { EventStore, type LoggedFact, type Stream } from "../ports/EventStore.ts"
import { Followers, type Notice } from "../ports/Followers.ts"
import { Journals } from "../ports/Journals.ts"
import type { AlertTarget } from "./alertTargets.ts"
import { isKnownFact } from "./knownFacts.ts"
import type { TargetAlert } from "./sendAlerts.ts"

type Occasion =
  | { readonly type: "circuit"; readonly destination: DestinationId; readonly fact: CircuitFact }
  /** Null when it is enabled again. */
  | { readonly type: "disabled"; readonly destination: DestinationId; readonly reason: string | null }
  | {
      readonly type: "deadLetter"
      readonly destination: DestinationId
      readonly messageId: MessageId
      readonly error: DeliveryError
    }
  | {
      readonly type: "condition"
      readonly destination: DestinationId | null
      readonly target: DestinationId
      readonly fact: ConditionFact
    }
  | {
      readonly type: "commandRefused"
      readonly destination: null
      readonly commandId: string
      readonly fact: CommandFact
    }

export const alertsOfFacts = Effect.fnUntraced(function* (
  facts: ReadonlyArray<LoggedFact>,
  targets: ReadonlyArray<AlertTarget>
) {
  const now = yield* DateTime.now
  const young = facts.filter(({ at }) => isRecent(at, now))
  const unknown = young.find(({ name }) => !isKnownFact(name))
  // This release can't tell whether the fact deserves an alert, so a newer process must.
  if (unknown !== undefined) {
    return yield* Effect.die(new UnreadableFact({ name: unknown.name, message: "a newer release wrote this fact" }))
  }
  const recent = young.filter(({ name }) => mayAlert(name))
  const destinations = yield* destinationsOf(recent)
  const occasions = recent.flatMap((logged) => {
    const occasion = occasionOf(logged, destinations)
    return occasion === null ? [] : [{ logged, occasion }]
  })
  const ids = occasions.flatMap(({ occasion: { destination } }) => destination ?? [])
  const subjects = yield* subjectsOf([...new Set(ids)])
  // A notice about a refused command stands under its target.
  const refusedTo = occasions.some(({ occasion }) => occasion.type === "commandRefused")
    ? targets.map(({ id }) => id)
    : []
  const alerted = yield* noticesOf([...new Set([...destinations.values(), ...refusedTo])])

  const alerts: Array<TargetAlert> = []
  for (const { logged, occasion } of occasions) {
    const origin = `${logged.stream}:${logged.version}`
    const subject = occasion.destination === null ? null : (subjects.get(occasion.destination) ?? null)
    if (occasion.type === "condition") {
      const target = targets.find(({ id }) => id === occasion.target)
      if (target === undefined) continue
      const watched = { orgId: target.orgId, target: target.id, at: logged.at }
      alerts.push({ target, alert: conditionAlert(watched, occasion.fact, subject), origin })
    } else if (occasion.type === "commandRefused") {
      const { orgId, command, problem, status, detail } = occasion.fact
      const alert = commandRefused(orgId, logged.at, {
        commandId: occasion.commandId,
        command,
        problem,
        status,
        detail
      })
      for (const target of targetsOf(targets, "commandRefused", { orgId }, logged)) {
        if (alerted.addOnceAnHour({ target: target.id, destination: target.id, at: logged.at }))
          alerts.push({ target, alert, origin })
      }
    } else if (subject !== null && occasion.type === "circuit") {
      const alert = yield* circuitAlert(subject, occasion.fact, logged)
      if (alert === null) continue
      alerts.push(...targetsOf(targets, "circuit", subject, logged).map((target) => ({ target, alert, origin })))
    } else if (subject !== null && occasion.type === "disabled") {
      const about = { orgId: subject.orgId, destination: subject, at: logged.at }
      const alert = occasion.reason === null ? destinationEnabled(about) : destinationDisabled(about, occasion.reason)
      alerts.push(...targetsOf(targets, "disabled", subject, logged).map((target) => ({ target, alert, origin })))
      // The person who removed a destination knows that its messages become dead letters.
    } else if (subject !== null && occasion.type === "deadLetter" && !subject.removed) {
      const about = { orgId: subject.orgId, destination: subject, at: logged.at }
      const alert = deadLetter(about, occasion.messageId, occasion.error)
      for (const target of targetsOf(targets, "deadLetter", subject, logged)) {
        const notice = { target: target.id, destination: subject.id, at: logged.at }
        if (alerted.addOnceAnHour(notice)) alerts.push({ target, alert, origin })
      }
    }
  }
  return { alerts, notices: alerted.added() }
})

const CIRCUIT = "circuit-"
const COMMAND = "command-"
/** The prefix of a destination's journal is its channel's. */
const UUID_LENGTH = 36

const occasionOf = (logged: LoggedFact, destinations: ReadonlyMap<MessageId, DestinationId>): Occasion | null => {
  const { stream, messageId } = logged
  if (messageId !== null) {
    const error = deadLetterErrorOf(Result.getOrThrow(messageFact(logged)))
    const destination = destinations.get(messageId)
    return error === null || destination === undefined ? null : { type: "deadLetter", destination, messageId, error }
  }
  if (stream.startsWith(CIRCUIT)) {
    const destination = DestinationId.make(stream.slice(CIRCUIT.length))
    return { type: "circuit", destination, fact: Result.getOrThrow(circuitFact(logged)) }
  }
  if (isConfigurationFact(logged.name)) {
    const fact = Result.getOrThrow(configurationFact(logged))
    const destination = DestinationId.make(stream.slice(-UUID_LENGTH))
    if (fact.type === "DestinationDisabled") return { type: "disabled", destination, reason: fact.reason }
    if (fact.type === "DestinationEnabled") return { type: "disabled", destination, reason: null }
  }
  const target = targetOf(stream)
  if (target !== null) {
    const fact = Result.getOrThrow(conditionFact(logged))
    const destination = fact.type === "ConditionBegan" ? (fact.destination ?? null) : null
    return { type: "condition", destination, target, fact }
  }
  if (stream.startsWith(COMMAND)) {
    const fact = Result.getOrThrow(commandFact(logged))
    return { type: "commandRefused", destination: null, commandId: stream.slice(COMMAND.length), fact }
  }
  return null
}

const destinationsOf = Effect.fnUntraced(function* (facts: ReadonlyArray<LoggedFact>) {
  const ids = [...new Set(facts.flatMap(({ messageId }) => messageId ?? []))]
  const streams: ReadonlyMap<MessageId, Stream> =
    ids.length === 0 ? new Map() : yield* (yield* EventStore).loadMany(ids)
  return new Map(
    [...streams].flatMap(([id, { facts }]) => {
      const first = facts[0]?.fact
      return first?.type === "MessageQueued" ? [[id, first.destination] as const] : []
    })
  )
})

const targetsOf = (
  targets: ReadonlyArray<AlertTarget>,
  event: AlertEvent,
  { orgId }: Pick<AlertSubject, "orgId">,
  { at }: LoggedFact
): ReadonlyArray<AlertTarget> =>
  targets.filter(
    (target) =>
      target.orgId === orgId && target.events.includes(event) && DateTime.isGreaterThanOrEqualTo(at, target.createdAt)
  )

interface AlertSubject extends AlertedDestination {
  readonly orgId: OrgId
  readonly removed: boolean
}

const subjectsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<DestinationId>) {
  const channels = yield* Channels
  const found = yield* (yield* Destinations).among(ids)
  return new Map(
    [...found.values()].flatMap((destination) => {
      const { id, orgId, channel, alerting, removed } = destination
      if (alerting !== null) return []
      const noun = channels.get(channel)?.noun ?? `${channel} destination`
      const origin = urlIn(destination)?.origin ?? null
      return [[id, { id, orgId, channel, noun, origin, removed } satisfies AlertSubject]]
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
  // A reset closes only a circuit that had opened: the facts before it tell.
  const history =
    fact.type === "CircuitReset"
      ? (yield* (yield* Journals).load(`circuit-${subject.id}`)).flatMap((row) =>
          row.version > version ? [] : Result.getOrThrow(circuitFact(row))
        )
      : [fact]
  return circuitNews(history) === "closed" ? circuitClosed(about) : null
})

/** The last notices about these destinations, and those that are added here. */
const noticesOf = Effect.fnUntraced(function* (destinations: ReadonlyArray<DestinationId>) {
  const known = destinations.length === 0 ? [] : yield* (yield* Followers).notices(destinations)
  const keyOf = ({ target, destination }: Notice) => `${target} ${destination}`
  const last = new Map(known.map((notice) => [keyOf(notice), notice.at]))
  const added = new Map<string, Notice>()
  return {
    /** Adds the notice unless there is one within an hour, by the facts' times. Answers whether it did. */
    addOnceAnHour: (notice: Notice): boolean => {
      const key = keyOf(notice)
      if (!mayAlertAgain(last.get(key) ?? null, notice.at)) return false
      last.set(key, notice.at)
      added.set(key, notice)
      return true
    },
    added: (): ReadonlyArray<Notice> => [...added.values()]
  }
})
