/** What the judge knows of each message: what its committed facts say, in plain terms. */
import type { MessageId } from "../../../src/domain/ids.ts"
import type { MessageQueued } from "../../../src/domain/message/facts.ts"
import type { MessageStatus } from "../../../src/domain/message/machine.ts"

/** A message as its committed facts describe it. */
export interface Entry {
  readonly queued: MessageQueued
  status: MessageStatus
  version: number
  epoch: number
  attempt: number
  /** The attempt was started and not closed. */
  open: boolean
  /** The attempt is open and nobody works on it: whoever was asked, or a receipt, must tell what became of it. */
  doubted: boolean
  /** Of this epoch. */
  deferrals: number
  /** Line of its ordering key; null without one. */
  readonly line: string | null
  /** What is to be sent; a replay may bring another. */
  body: string
  erased: boolean
  dismissed: boolean
  /** An attempt was open when the body was erased, and may still send what it holds. */
  underWayWhenErased: boolean
  /** The attempt was closed for good and its ending must come in the same append. */
  endingOwed: boolean
  notBefore: number
  /** Its version when it last went into the queue: of two rows for one attempt, only that one is alive. */
  queuedAt: number
  /** A receipt said of this epoch that it was taken. */
  proven: boolean
  /** Receipts that settle this epoch, as far as they were recorded. */
  verdicts: Set<"delivered" | "failed">
}

export type Ledger = ReadonlyMap<MessageId, Entry>

export const attemptKey = (id: MessageId, epoch: number, attempt: number) => `${id} ${epoch}/${attempt}`
