/**
 * Explains a message (domain/message/explanation/), now or at an earlier time. Facts tell earlier suspensions, pauses
 * and circuits; queue, rate limit and workers are known only as they are now, and the answer names the unknown ones.
 */
import { DateTime, Effect } from "effect"
import type { DestinationId, MessageId, OrgId } from "../../domain/ids.ts"
import { replay } from "../../domain/message/decider.ts"
import { type Explanation, explain } from "../../domain/message/explanation/explain.ts"
import { isWaiting } from "../../domain/message/explanation/waiting.ts"
import type { Message } from "../../domain/message/transitions.ts"
import { viewOf } from "../../domain/message/view.ts"
import { Archive } from "../ports/Archive.ts"
import { Backlogs } from "../ports/Backlogs.ts"
import { Destinations } from "../ports/Destinations.ts"
import { EventStore } from "../ports/EventStore.ts"
import { Parked } from "../ports/Parked.ts"
import { Processes } from "../ports/Processes.ts"
import { livingIn } from "../processes/Troubles.ts"
import { loadStream, MessageNotFound, upTo } from "./readMessage.ts"
import { nothingHolds, readSituation, readSuspension } from "./situation.ts"

export const explainMessage = Effect.fnUntraced(function* (orgId: OrgId, id: MessageId, at: DateTime.Utc | null) {
  const { facts } = yield* loadStream(orgId, id)
  const history = upTo(facts, at)
  const opening = history[0]?.fact
  if (opening?.type !== "MessageQueued") return yield* new MessageNotFound({ id })
  const message = replay(history.map(({ fact }) => fact))
  const { channel, destination } = opening
  const holds = isWaiting(message)
    ? { ...(yield* readSituation(channel, destination, at)), suspension: yield* readSuspension(orgId, at) }
    : { ...nothingHolds, suspension: null }
  const present =
    at === null
      ? yield* presentOf(orgId, id, destination, message)
      : { ...nothingKnown, unknown: ["workers", "queue", "rateLimit"] }
  const parked = at === null ? yield* (yield* Parked).find(orgId, id) : null
  const moment = at ?? (yield* DateTime.now)
  const restorations = yield* (yield* Archive).restorations
  return explain(id, history, { ...holds, ...present, parked, restorations }, moment)!
})

type Present = Parameters<typeof explain>[2]

const nothingKnown: Omit<Present, "suspension" | "pause" | "disabling" | "circuit" | "restorations" | "unknown"> = {
  rateLimit: null,
  before: null,
  ahead: null,
  workers: null
}

const presentOf = Effect.fnUntraced(function* (
  orgId: OrgId,
  id: MessageId,
  destination: DestinationId,
  message: Message
) {
  if (message.status !== "QUEUED" && message.status !== "SENDING") return { ...nothingKnown, unknown: [] }
  const workers = livingIn("worker", yield* (yield* Processes).list).length
  if (!isWaiting(message)) return { ...nothingKnown, workers, unknown: [] }
  const [found, turn] = yield* Effect.all(
    [
      Effect.flatMap(Destinations, ({ get }) => get(orgId, destination)),
      Effect.flatMap(Backlogs, ({ turn }) => turn(destination, id, message.progress.dueAt!))
    ],
    { concurrency: 2 }
  )
  return {
    rateLimit: found?.settings.rateLimit ?? null,
    before: turn.head === null ? null : yield* headOf(turn.head),
    ahead: turn.ahead,
    workers,
    unknown: []
  }
})

const headOf = Effect.fnUntraced(function* (id: MessageId) {
  const { facts } = yield* (yield* EventStore).load(id)
  const view = viewOf(id, facts)
  return view === null ? null : ({ id, status: view.status } satisfies Explanation["before"])
})
