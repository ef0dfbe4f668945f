/** The words of a dossier's timeline for the people who handle the case. */
import type { Operation } from "../audit/entry.ts"

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

export const activeOperations = Object.keys(words) as ReadonlyArray<Operation>

export const activityOf = (operation: Operation): Activity | null => words[operation as keyof typeof words] ?? null
