/**
 * The alerts and their texts; each service's form is its adapter's. Texts hold no body, no secret and no path of a URL,
 * which may hold one.
 */
import { DateTime } from "effect"
import type { CircuitFactOf } from "../circuit/facts.ts"
import { type ConditionBegan, type ConditionFact, type ConditionName, conditions } from "../condition/facts.ts"
import type { DeliveryError } from "../delivery/DeliveryError.ts"
import type { ChannelName, DestinationId, MessageId, OrgId } from "../ids.ts"

export const alertEvents = ["circuit", "deadLetter", "disabled", "commandRefused", ...conditions] as const
export type AlertEvent = (typeof alertEvents)[number]

export const alertTypes = [
  "posthaste.circuit.opened",
  "posthaste.circuit.closed",
  "posthaste.dead_letter",
  "posthaste.destination.disabled",
  "posthaste.destination.enabled",
  "posthaste.oldest_due.exceeded",
  "posthaste.oldest_due.recovered",
  "posthaste.command.refused",
  "posthaste.broker.away",
  "posthaste.broker.back",
  "posthaste.test",
  "posthaste.test.ended"
] as const
export type AlertType = (typeof alertTypes)[number]

export const severities = ["critical", "error", "warning", "info"] as const
export type Severity = (typeof severities)[number]

export interface AlertedDestination {
  readonly id: DestinationId
  readonly channel: ChannelName
  /** A name for people, such as "webhook endpoint". */
  readonly noun: string
  readonly origin: string | null
}

export interface Alert {
  readonly type: AlertType
  readonly action: "trigger" | "resolve"
  readonly severity: Severity
  readonly orgId: OrgId
  /** Names the trouble; an alert and its resolution share it. */
  readonly subject: string
  readonly at: DateTime.Utc
  readonly summary: string
  readonly destination: AlertedDestination | null
  readonly details: Readonly<Record<string, string | number>>
}

const nameOf = ({ id, noun, origin }: AlertedDestination): string =>
  `${noun} ${id}${origin === null ? "" : ` (${origin})`}`

interface About {
  readonly orgId: OrgId
  readonly destination: AlertedDestination
  readonly at: DateTime.Utc
}

const stopOf = (kind: "circuit" | "disabled", { orgId, destination, at }: About) => ({
  severity: "error" as const,
  ...{ orgId, subject: `posthaste/${orgId}/${kind}/${destination.id}`, at, destination }
})

export const circuitOpened = (about: About, { failures, error }: CircuitFactOf<"CircuitOpened">): Alert => {
  const why = error === null ? `after ${failures} failures in a row` : `after one answer: ${error.message}`
  return {
    ...stopOf("circuit", about),
    type: "posthaste.circuit.opened",
    action: "trigger",
    summary: `The circuit of the ${nameOf(about.destination)} opened ${why}. Its messages wait.`,
    details: error === null ? { failures } : { failures, ...error }
  }
}

export const circuitClosed = (about: About): Alert => ({
  ...stopOf("circuit", about),
  type: "posthaste.circuit.closed",
  action: "resolve",
  summary: `The circuit of the ${nameOf(about.destination)} is closed again. What waited is being sent.`,
  details: {}
})

export const deadLetter = (about: About, messageId: MessageId, { code, message }: DeliveryError): Alert => ({
  type: "posthaste.dead_letter",
  action: "trigger",
  severity: "warning",
  orgId: about.orgId,
  subject: `posthaste/${about.orgId}/dead-letter/${about.destination.id}`,
  at: about.at,
  destination: about.destination,
  summary: `A message for the ${nameOf(about.destination)} became a dead letter: ${message}. Others may follow; the next hour is silent about them.`,
  details: { messageId, code, message }
})

export const destinationDisabled = (about: About, reason: string): Alert => ({
  ...stopOf("disabled", about),
  type: "posthaste.destination.disabled",
  action: "trigger",
  summary: `The ${nameOf(about.destination)} is disabled: ${reason}. Its messages wait until it is enabled.`,
  details: { reason }
})

export const destinationEnabled = (about: About): Alert => ({
  ...stopOf("disabled", about),
  type: "posthaste.destination.enabled",
  action: "resolve",
  summary: `The ${nameOf(about.destination)} is enabled again. What waited is being sent.`,
  details: {}
})

interface Refused {
  readonly commandId: string
  readonly command: string
  readonly problem: string
  readonly status: number
  readonly detail: string
}

export const commandRefused = (orgId: OrgId, at: DateTime.Utc, refused: Refused): Alert => ({
  type: "posthaste.command.refused",
  action: "trigger",
  severity: "warning",
  orgId,
  subject: `posthaste/${orgId}/command-refused`,
  at,
  destination: null,
  summary: `A command of a transaction, ${refused.command}, was refused after its commit: ${refused.detail} Others may follow; the next hour is silent about them.`,
  details: { ...refused }
})

interface Watched {
  readonly orgId: OrgId
  readonly target: DestinationId
  readonly at: DateTime.Utc
}

interface Words {
  readonly slug: string
  readonly severity: Severity
  readonly began: AlertType
  readonly ended: AlertType
  readonly says: (fact: ConditionBegan, destination: AlertedDestination | null) => string
  readonly saysOver: string
}

const conditionWords: Readonly<Record<ConditionName, Words>> = {
  oldestDue: {
    slug: "oldest-due",
    severity: "warning",
    began: "posthaste.oldest_due.exceeded",
    ended: "posthaste.oldest_due.recovered",
    says: ({ since, limitSeconds }, destination) =>
      `The oldest due message has waited longer than ${limitSeconds} s, since ${DateTime.formatIso(since)}.${destination === null ? "" : ` It is for the ${nameOf(destination)}.`}`,
    saysOver: "No due message waits for long any more."
  },
  broker: {
    slug: "broker",
    severity: "error",
    began: "posthaste.broker.away",
    ended: "posthaste.broker.back",
    says: ({ since }) =>
      `No process of Posthaste has reached RabbitMQ since ${DateTime.formatIso(since)}. Commands wait in their queue, facts and dead letters go out later.`,
    saysOver: "RabbitMQ is reached again. What waited is being moved."
  }
}

export const conditionAlert = (
  { orgId, target, at }: Watched,
  fact: ConditionFact,
  destination: AlertedDestination | null
): Alert => {
  const { slug, severity, began, ended, says, saysOver } = conditionWords[fact.condition]
  const about = { severity, orgId, subject: `posthaste/${orgId}/${slug}/${target}`, at }
  if (fact.type === "ConditionEnded")
    return { ...about, type: ended, action: "resolve", destination: null, summary: saysOver, details: {} }
  const { since, messageId, limitSeconds } = fact
  const details = {
    since: DateTime.formatIso(since),
    ...(messageId !== undefined && { messageId }),
    ...(limitSeconds !== undefined && { limitSeconds })
  }
  return { ...about, type: began, action: "trigger", destination, summary: says(fact, destination), details }
}

/** A test begins and ends at once, so it leaves no open incident. */
export const testAlerts = ({ orgId, target, at }: Watched, nonce: string): ReadonlyArray<Alert> => {
  const test = {
    severity: "info",
    orgId,
    subject: `posthaste/${orgId}/test/${target}/${nonce}`,
    at,
    destination: null,
    details: {}
  } as const
  return [
    { ...test, type: "posthaste.test", action: "trigger", summary: "A test of this alert target. Nothing is wrong." },
    { ...test, type: "posthaste.test.ended", action: "resolve", summary: "The test of this alert target is over." }
  ]
}
