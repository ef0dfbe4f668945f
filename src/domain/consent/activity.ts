/** The timeline of a dossier: each fact that concerns the dossier, in the words of the people who handle the case. */
import type { AuditEntry, Operation } from "../audit/entry.ts"

export const activities = [
  "MESSAGE_CREATED",
  "MESSAGE_SENT",
  "MESSAGE_STATUS_UPDATE",
  "MESSAGE_FAILED",
  "MESSAGE_CANCELLED",
  "MESSAGE_EXPIRED",
  "MESSAGE_REPLAYED",
  "MESSAGE_ERASED",
  "MESSAGE_BLOCKED",
  "CONSENT_GRANTED",
  "CONSENT_WITHDRAWN"
] as const
export type Activity = (typeof activities)[number]

const words: { readonly [O in Operation]?: Activity } = {
  CREATED: "MESSAGE_CREATED",
  SENT: "MESSAGE_SENT",
  UPDATED: "MESSAGE_STATUS_UPDATE",
  FAILED: "MESSAGE_FAILED",
  CANCELLED: "MESSAGE_CANCELLED",
  EXPIRED: "MESSAGE_EXPIRED",
  REPLAYED: "MESSAGE_REPLAYED",
  ERASED: "MESSAGE_ERASED",
  BLOCKED_BY_POLICY: "MESSAGE_BLOCKED",
  CONSENT_GRANTED: "CONSENT_GRANTED",
  CONSENT_WITHDRAWN: "CONSENT_WITHDRAWN"
}

/** Null for a fact that concerns no dossier. */
export const activityOf = ({ dossierId, operation }: AuditEntry): Activity | null =>
  dossierId === null ? null : (words[operation] ?? null)
