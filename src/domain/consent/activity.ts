/** The timeline of a dossier: each fact that concerns the dossier, in the words of the people who handle the case. */
import type { AuditEntry, Operation } from "../audit/entry.ts"

const words = {
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
} as const satisfies { readonly [O in Operation]?: string }
export type Activity = (typeof words)[keyof typeof words]
export const activities = Object.values(words)

/** Null for a fact that concerns no dossier. */
export const activityOf = ({ dossierId, operation }: AuditEntry): Activity | null =>
  dossierId !== null && operation in words ? words[operation as keyof typeof words] : null
