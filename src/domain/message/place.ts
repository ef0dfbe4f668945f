/**
 * The place in the queue that its facts give a message; the queue is checked against it and rebuilt from it. It follows
 * `queueChange` fact by fact, so both always agree.
 */
import { initial } from "./decider.ts"
import { type QueueChange, queueChange } from "./queueChange.ts"
import { type Message, step } from "./transitions.ts"
import type { StoredFact } from "./view.ts"

export interface Wait extends Omit<WaitChange, "type"> {
  readonly version: number
}

type WaitChange = Extract<QueueChange, { readonly type: "Wait" }>

const waitOf = ({ type: _, ...change }: WaitChange, version: number): Wait => ({ ...change, version })

export type Place =
  /** In its lane, in its line, or claimed by a worker that has not begun. */
  | ({ readonly type: "Waiting" } & Wait)
  /** An attempt is open: a worker holds the message in the form it was claimed in. */
  | ({ readonly type: "UnderWay" } & Wait)
  /** Out of the queue. A dead letter with an ordering key may hold its place in the line. */
  | { readonly type: "Out"; readonly dead: boolean }

export interface TrackedMessage {
  readonly message: Message
  readonly wait: Wait | null
  /** The version of the fact that put it at the end of its line. */
  readonly enteredAt: number
}

export const beginning: TrackedMessage = { message: initial, wait: null, enteredAt: 0 }

export const track = (tracked: TrackedMessage, { version, fact }: StoredFact): TrackedMessage | null => {
  const message = step(tracked.message, fact)
  if (message === null) return null
  const enters = fact.type === "MessageQueued" || fact.type === "MessageReplayed"
  const change = queueChange(tracked.message, fact, message)
  const wait = change?.type === "Wait" ? waitOf(change, version) : tracked.wait
  return { message, wait, enteredAt: enters ? version : tracked.enteredAt }
}

export const placeOf = ({ message: { status, progress }, wait }: TrackedMessage): Place => {
  if (wait !== null) {
    if (status === "QUEUED") return { type: "Waiting", ...wait }
    if (status === "SENDING") return { type: progress.phase === "unresolved" ? "Waiting" : "UnderWay", ...wait }
  }
  return { type: "Out", dead: status === "FAILED" || status === "DEAD_LETTER" }
}
