/**
 * The audit entry of a fact: who did what, to which subject, and why it ended so. An entry says no more than its fact:
 * no body, no secret, and of the values of settings the URL without what may be secret in it. Attempts that settled nothing make no entry; the message lists them itself.
 */
import { DateTime } from "effect"
import type { AccessFact } from "../access/facts.ts"
import type { CircuitFact } from "../circuit/facts.ts"
import type { DossierFact } from "../consent/facts.ts"
import { type ConfigurationFact, isMove } from "../destination/facts.ts"
import type { ErasureFact } from "../erasure/facts.ts"
import type { EventFact } from "../event/facts.ts"
import type { ChannelName, EventId, MessageId, OrgId } from "../ids.ts"
import type { DeliveryError, MessageFact, MessageQueued } from "../message/facts.ts"
import type { ReplayFact } from "../replay/facts.ts"

export const operations = [
  "CREATED",
  "SENT",
  "UPDATED",
  "FAILED",
  "CANCELLED",
  "EXPIRED",
  "HURRIED",
  "DISMISSED",
  "REPLAYED",
  "ERASED",
  "BLOCKED_BY_POLICY",
  "CONSENT_GRANTED",
  "CONSENT_WITHDRAWN",
  "ADDRESSED",
  "SECRETS_CHANGED",
  "SECRET_ROTATED",
  "SECRET_SHOWN",
  "BODY_READ",
  "LOGIN_REFUSED",
  "PAUSED",
  "RESUMED",
  "DISABLED",
  "ENABLED",
  "REMOVED",
  "REVOKED",
  "HELD",
  "RESET"
] as const
export type Operation = (typeof operations)[number]

/** The subject of the operation. */
export interface Subject {
  /** message, event, dossier, circuit, replay, key, access, org, or a kind of destination as its journals are called, such as endpoint. */
  readonly type: string
  readonly id: string
}

type Detail = string | number | boolean | null | ReadonlyArray<string>
export type Details = Readonly<Record<string, Detail>>

export interface AuditEntry {
  readonly orgId: OrgId
  readonly operation: Operation
  readonly subject: Subject
  readonly channel: ChannelName | null
  readonly correlationId: string | null
  readonly dossierId: string | null
  readonly details: Details
}

/** An entry that is about no message and no dossier. */
const ofOrg = { channel: null, correlationId: null, dossierId: null }

/** `opening` is the first fact of the message's stream. */
export const entryOfMessage = (id: MessageId, opening: MessageQueued, fact: MessageFact): AuditEntry | null => {
  const said = saidOf(fact)
  if (said === null) return null
  const { orgId, channel, correlationId, dossierId } = opening
  const [operation, details] = said
  return { orgId, operation, subject: { type: "message", id }, channel, correlationId, dossierId, details }
}

type Said = readonly [Operation, Details]

const saidOf = (fact: MessageFact): Said | null => {
  switch (fact.type) {
    case "MessageQueued": {
      const { to, eventType, templateCode } = fact
      return ["CREATED", { to, eventType, templateCode }]
    }
    case "AttemptSucceeded": {
      const { attempt, providerMessageId } = fact
      return ["SENT", { attempt, providerMessageId }]
    }
    case "ReceiptRecorded":
      return ["UPDATED", { receipt: fact.receipt, contradicts: fact.contradicts, ...worded(fact.error) }]
    case "MessageFailed":
      return ["FAILED", { status: "FAILED", by: fact.by, ...worded(fact.error) }]
    case "MessageDeadLettered":
      return ["FAILED", { status: "DEAD_LETTER", reason: fact.reason, ...worded(fact.error) }]
    case "MessageCancelled":
      return ["CANCELLED", { reason: fact.reason }]
    case "MessageExpired":
      return ["EXPIRED", {}]
    case "MessageHurried":
      return ["HURRIED", {}]
    case "MessageDismissed":
      return ["DISMISSED", { reason: fact.reason }]
    case "MessageReplayed": {
      const { epoch, reason, edited, replayId } = fact
      return ["REPLAYED", { epoch, reason, edited, replayId }]
    }
    case "MessageBodyErased":
      return ["ERASED", { reason: fact.reason }]
    // The success or the receipt that proved the delivery has its own entry.
    case "MessageDelivered":
    case "AttemptStarted":
    case "AttemptFailed":
    case "AttemptDeferred":
    case "AttemptAbandoned":
    case "AttemptUnresolved":
      return null
  }
}

const worded = (error: DeliveryError | null): Details =>
  error === null ? {} : { code: error.code, message: error.message }

export const entryOfDossier = (fact: DossierFact): AuditEntry | null => {
  const { orgId, dossierId, channel } = fact
  const about = { orgId, subject: { type: "dossier", id: dossierId }, channel, dossierId, correlationId: null } as const
  switch (fact.type) {
    case "ConsentGranted":
      return { ...about, operation: "CONSENT_GRANTED", details: { source: fact.source } }
    case "ConsentWithdrawn":
      return { ...about, operation: "CONSENT_WITHDRAWN", details: { source: fact.source } }
    case "MessageBlocked": {
      const { to, eventType, templateCode, correlationId, reason } = fact
      return {
        ...about,
        correlationId,
        operation: "BLOCKED_BY_POLICY",
        details: { reason, to, eventType, templateCode }
      }
    }
    // Each cancelled message has its own entry.
    case "WithdrawalApplied":
      return null
  }
}

export const entryOfConfiguration = (subject: Subject, fact: ConfigurationFact): AuditEntry | null => {
  const said = changeOf(fact)
  if (said === null) return null
  const [operation, details] = said
  const channel = "channel" in fact ? fact.channel : null
  return { ...ofOrg, orgId: fact.orgId, operation, subject, channel, details }
}

const changeOf = (fact: ConfigurationFact): Said | null => {
  switch (fact.type) {
    case "DestinationCreated":
      return ["CREATED", {}]
    case "DestinationChanged":
      return ["UPDATED", { fields: fact.fields }]
    case "DestinationAddressed":
      // The change that led to it has its own entry; what it does not say is where requests go from now on.
      return isMove(fact) ? ["ADDRESSED", { url: fact.call.url, urlBefore: fact.urlBefore }] : null
    case "DestinationSecretsChanged":
      return ["SECRETS_CHANGED", { names: fact.names }]
    case "DestinationSecretRotated":
      return ["SECRET_ROTATED", { name: fact.name, previousUntil: DateTime.formatIso(fact.previousUntil) }]
    case "DestinationSecretShown":
      return ["SECRET_SHOWN", { name: fact.name }]
    case "DestinationPaused":
      return ["PAUSED", { reason: fact.reason }]
    case "DestinationResumed":
      return ["RESUMED", {}]
    case "DestinationDisabled":
      return ["DISABLED", { reason: fact.reason }]
    case "DestinationEnabled":
      return ["ENABLED", {}]
    case "DestinationRemoved":
      return ["REMOVED", {}]
    case "KeyCreated": {
      const { name, scopes, expiresAt, networks, limits } = fact
      return [
        "CREATED",
        {
          name,
          ...(scopes && { scopes }),
          ...(expiresAt && { expiresAt: DateTime.formatIso(expiresAt) }),
          ...(networks && { networks }),
          ...(Object.keys(limits).length > 0 && { limits: limitTexts(limits) })
        }
      ]
    }
    case "KeyRevoked":
      return ["REVOKED", {}]
    case "EventTypeCreated":
      return ["CREATED", { name: fact.name }]
    case "EventTypeChanged":
      return ["UPDATED", { name: fact.name }]
    case "EventTypeArchived":
      return ["REMOVED", { name: fact.name }]
    case "OrgChanged": {
      const { name, suspended, limits, retry, retention } = fact
      const days = Object.entries(retention).map(([kept, count]) => `${kept} ${count}`)
      return [
        "UPDATED",
        {
          ...{ name, suspended, limits: limitTexts(limits) },
          ...(retry && { retry: JSON.stringify(retry) }),
          ...(days.length > 0 && { retention: days })
        }
      ]
    }
  }
}

const limitTexts = (limits: Readonly<Record<string, number>>): ReadonlyArray<string> =>
  Object.entries(limits).map(([limit, allowed]) => `${limit} ${allowed}`)

export const entryOfErasure = (id: string, fact: ErasureFact): AuditEntry => {
  const about = { ...ofOrg, orgId: fact.orgId, subject: { type: "erasure", id } }
  return fact.type === "ErasureRequested"
    ? { ...about, operation: "CREATED", details: { by: fact.by, reason: fact.reason } }
    : { ...about, operation: "ERASED", details: { messages: fact.messages, events: fact.events } }
}

/** What belongs to no org is the audit of this one, which no key acts for; the operator asks for it by this name. */
export const NOBODY = "*" as OrgId

export const entryOfAccess = (id: string, fact: AccessFact): AuditEntry => {
  if (fact.type === "BodyRead") {
    const { orgId, subject, address } = fact
    return { ...ofOrg, orgId, operation: "BODY_READ", subject: { type: subject, id: fact.id }, details: { address } }
  }
  const { key, reason, address, count } = fact
  const subject = key === null ? { type: "access", id } : { type: "key", id: key.id }
  return {
    ...ofOrg,
    orgId: key?.orgId ?? NOBODY,
    operation: "LOGIN_REFUSED",
    subject,
    details: { reason, address, count }
  }
}

/** Only changes by hand; the circuit's journal tells the automatic ones. */
export const entryOfCircuit = (orgId: OrgId, destination: string, fact: CircuitFact): AuditEntry | null => {
  if (fact.type !== "CircuitHeld" && fact.type !== "CircuitReset") return null
  const operation = fact.type === "CircuitHeld" ? "HELD" : "RESET"
  return { ...ofOrg, orgId, operation, subject: { type: "circuit", id: destination }, details: { reason: fact.reason } }
}

export const entryOfEvent = (id: EventId, fact: EventFact): AuditEntry => {
  const about = { orgId: fact.orgId, subject: { type: "event", id }, channel: null } as const
  switch (fact.type) {
    case "EventPublished": {
      const { eventType, matched, correlationId, dossierId } = fact
      return { ...about, operation: "CREATED", correlationId, dossierId, details: { eventType, matched } }
    }
    case "EventErased":
      return { ...about, operation: "ERASED", correlationId: null, dossierId: null, details: { reason: fact.reason } }
  }
}

export const entryOfReplay = (orgId: OrgId, id: string, fact: ReplayFact): AuditEntry | null => {
  const about = { ...ofOrg, orgId, subject: { type: "replay", id } }
  switch (fact.type) {
    case "ReplayRequested":
      return { ...about, operation: "CREATED", details: { matched: fact.matched, reason: fact.reason } }
    case "ReplayCancelled":
      return { ...about, operation: "CANCELLED", details: { reason: fact.reason } }
    default:
      return null
  }
}
