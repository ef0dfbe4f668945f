/**
 * The audit entry of a fact: operation, subject, and some fields of the fact. It holds no body, no secret, and URLs
 * without their secrets.
 */
import type { OrgId } from "../ids.ts"
import { partsOf } from "../recorded.ts"
import { halvesOf, MESSAGES } from "../streams.ts"

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

export interface FactOfStream {
  readonly stream: string
  readonly name: string
  readonly data: string
  readonly forgettable?: string | null
}

export interface AuditEntry {
  readonly operation: Operation
  /**
   * The type is message, event, dossier, circuit, replay, key, access, org, or the journal prefix of a destination,
   * such as endpoint.
   */
  readonly subject: { readonly type: string; readonly id: string }
  readonly details: Readonly<Record<string, unknown>>
}

type Told = readonly [Operation, ...fields: ReadonlyArray<string>]

/** Facts of messages. The routine ones, and endings without an actor, show only in the message's own audit. */
const ofMessages: Readonly<Record<string, Told>> = {
  MessageQueued: ["CREATED", "to", "eventType", "templateCode"],
  AttemptSucceeded: ["SENT", "attempt", "providerMessageId"],
  ReceiptRecorded: ["UPDATED", "receipt", "contradicts", "error"],
  MessageFailed: ["FAILED", "by", "error"],
  MessageDeadLettered: ["FAILED", "reason", "error"],
  MessageCancelled: ["CANCELLED", "reason"],
  MessageExpired: ["EXPIRED"],
  MessageHurried: ["HURRIED"],
  MessageDismissed: ["DISMISSED", "reason"],
  MessageReplayed: ["REPLAYED", "epoch", "reason", "edited", "replayId"],
  MessageBodyErased: ["ERASED", "reason"]
}

const ofJournals: Readonly<Record<string, Told>> = {
  ConsentGranted: ["CONSENT_GRANTED", "channel", "source"],
  ConsentWithdrawn: ["CONSENT_WITHDRAWN", "channel", "source"],
  MessageBlocked: ["BLOCKED_BY_POLICY", "channel", "reason", "to", "eventType", "templateCode"],
  DestinationCreated: ["CREATED"],
  DestinationChanged: ["UPDATED", "fields"],
  DestinationAddressed: ["ADDRESSED", "call", "urlBefore"],
  DestinationSecretsChanged: ["SECRETS_CHANGED", "names"],
  DestinationSecretRotated: ["SECRET_ROTATED", "name", "previousUntil"],
  DestinationSecretShown: ["SECRET_SHOWN", "name"],
  DestinationPaused: ["PAUSED", "reason"],
  DestinationResumed: ["RESUMED"],
  DestinationDisabled: ["DISABLED", "reason"],
  DestinationEnabled: ["ENABLED"],
  DestinationRemoved: ["REMOVED"],
  KeyCreated: ["CREATED", "name", "scopes", "expiresAt", "networks", "limits"],
  KeyRevoked: ["REVOKED"],
  EventTypeCreated: ["CREATED", "name"],
  EventTypeChanged: ["UPDATED", "name"],
  EventTypeArchived: ["REMOVED", "name"],
  OrgChanged: ["UPDATED", "name", "suspended", "limits", "retry", "retention"],
  ErasureRequested: ["CREATED", "by", "reason"],
  ErasureCompleted: ["ERASED", "messages", "events"],
  EventErased: ["ERASED", "reason"],
  BodyRead: ["BODY_READ", "address"],
  LoginRefused: ["LOGIN_REFUSED", "reason", "address", "count"],
  CircuitHeld: ["HELD", "reason"],
  CircuitReset: ["RESET", "reason"],
  ReplayRequested: ["CREATED", "matched", "reason"],
  ReplayCancelled: ["CANCELLED", "reason"]
}

const toldBy = { ...ofMessages, ...ofJournals }

const typeOf = (name: string) => name.slice(0, name.indexOf("@"))

export const typesTelling = (some: ReadonlyArray<Operation>): ReadonlyArray<string> =>
  Object.entries(toldBy).flatMap(([type, [operation]]) => (some.includes(operation) ? [type] : []))

/** The audit of facts that belong to no org; only the operator reads it. */
export const NOBODY = "*" as OrgId

type Data = Readonly<Record<string, unknown>>

/** The first address of a destination is part of its creation. */
const isTold = (type: string, { urlBefore, call }: Data): boolean =>
  type !== "DestinationAddressed" || (urlBefore !== null && urlBefore !== (call as { readonly url: string }).url)

/** The org whose audit tells a journal's fact; null for none, "" where the journal's first fact names it. */
export const orgTold = ({ name, data }: Pick<FactOfStream, "name" | "data">): string | null => {
  const type = typeOf(name)
  if (ofJournals[type] === undefined) return null
  const said = JSON.parse(data) as Data
  if (!isTold(type, said)) return null
  if (type === "LoginRefused") return (said["key"] as { readonly orgId: string } | null)?.orgId ?? NOBODY
  return (said["orgId"] as string | undefined) ?? ""
}

export const entryOf = ({ stream, name, ...parts }: FactOfStream): AuditEntry | null => {
  const type = typeOf(name)
  const told = toldBy[type]
  if (told === undefined) return null
  const said: Data = partsOf(parts)
  const [operation, ...fields] = told
  return {
    operation,
    subject: subjectOf(stream, said),
    details: Object.assign({}, ...fields.map((field) => detail(field, said[field])))
  }
}

const detail = (field: string, value: unknown): Data => {
  if (value === null || value === undefined) return {}
  if (field === "error") return value as Data
  if (field === "call") return { url: (value as { readonly url: string }).url }
  return { [field]: value }
}

const UUID_LENGTH = 36

/** Journals are named `<kind>-<id>`. Every id is a UUID except an org's. */
const subjectOf = (stream: string, { dossierId, subject, id, key }: Data): AuditEntry["subject"] => {
  const [kind, rest] = halvesOf(stream)
  if (stream.startsWith(MESSAGES) || kind === "org") return { type: kind, id: rest }
  if (kind === "consent" || kind === "blocked") return { type: "dossier", id: String(dossierId ?? "erased") }
  if (kind === "access" && subject !== undefined) return { type: String(subject), id: String(id) }
  if (kind === "access" && key != null) return { type: "key", id: (key as { readonly id: string }).id }
  return { type: stream.slice(0, -UUID_LENGTH - 1), id: stream.slice(-UUID_LENGTH) }
}
