/**
 * Carries out replays, a step at a time: take one under a lease, search a while for its items, give each of the next
 * items its epoch or message (or dismiss, cancel, send elsewhere), and account for them in the journal. No crash gives
 * a message two epochs: the item holds the epoch that had ended at the request, and `MessageReplayed` names the job.
 * The next step comes when most of the last one has had its first attempt, so that a replay spares the lanes it shares.
 */
import { DateTime, Duration, Effect, Result } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { decide, replay } from "../../domain/message/decider.ts"
import { progressOf, statusOf } from "../../domain/replay/decider.ts"
import { backgroundOn } from "../background.ts"
import { commandMessages, type Decision } from "../command.ts"
import { entryOf } from "../entry.ts"
import { messageIdOf } from "../events/messageOfEvent.ts"
import { type Append, EventStore, type Stream } from "../ports/EventStore.ts"
import { Fingerprint } from "../ports/Fingerprint.ts"
import { type DeadItem, type ReplayItem, type ReplayJob, Replays } from "../ports/Replays.ts"
import { commandReplay, loadReplay, type Snapshot, searchAWhile } from "./replays.ts"
import { sendElsewhere } from "./sendElsewhere.ts"
import { sendMissed } from "./sendMissed.ts"

const ROWS_MAX = 500
/** Longer than a step takes. After a crash it is how long the replay stands still. */
const LEASE = Duration.seconds(10)
const PAUSE = Duration.millis(100)
const LOOK_PAUSE_MAX = Duration.seconds(5)
const PATIENCE = Duration.minutes(1)

export const replayOnce = Effect.fnUntraced(function* () {
  const replays = yield* Replays
  const taken = yield* replays.take(LEASE)
  if (taken === null) return false
  const job = yield* searchAWhile(taken)
  if (job.searching) {
    yield* replays.back(job.id, Duration.zero)
    return true
  }
  const before = yield* loadReplay(job)
  const waits = statusOf(before.replay) === "RUNNING" && (yield* mustWait(before))
  const after = waits || statusOf(before.replay) !== "RUNNING" ? before : yield* advance(before)
  if (statusOf(after.replay) === "RUNNING") yield* replays.back(job.id, waits ? yield* lookPause(before) : PAUSE)
  else {
    yield* replays.close(job.id)
    yield* sayEnded(after)
  }
  return true
})

const sayEnded = ({ job, replay }: Snapshot) => {
  const { replayed, skipped } = progressOf(replay)
  return Effect.annotateLogs(Effect.logInfo(`${deedOf(job.selection)}: ${statusOf(replay).toLowerCase()}`), {
    ...{ replayId: job.id, org: job.orgId, count: replayed, skipped }
  })
}

const deedOf = (selection: ReplayJob["selection"]): string => {
  if ("waiting" in selection) return "a job that cancels messages has ended"
  if ("dismiss" in selection && selection.dismiss) return "a job that dismisses dead letters has ended"
  return "sendTo" in selection ? "a job that sends dead letters elsewhere has ended" : "a replay has ended"
}

const advance = Effect.fnUntraced(function* ({ job, replay }: Snapshot) {
  const { cursor } = progressOf(replay)
  const items = yield* (yield* Replays).items(job.id, cursor, ROWS_MAX)
  const tally = yield* replayItems(job, items)
  return yield* commandReplay(job, { type: "AdvanceReplay", from: cursor, ...tally }).pipe(
    // Another process accounted for the same items.
    Effect.catchTag("ReplayRejected", () => loadReplay(job))
  )
})

const replayItems = Effect.fnUntraced(function* (job: ReplayJob, items: ReadonlyArray<ReplayItem>) {
  const replayed =
    "missed" in job.selection
      ? yield* sendMissed(
          job,
          job.selection.missed,
          items.flatMap((item) => ("eventId" in item ? [item.eventId] : []))
        )
      : yield* replayDead(
          job,
          items.flatMap((item) => ("messageId" in item ? [item] : []))
        )
  return { replayed, skipped: items.length - replayed }
})

const replayDead = Effect.fnUntraced(function* (job: ReplayJob, items: ReadonlyArray<DeadItem>) {
  const { selection } = job
  if ("sendTo" in selection && selection.sendTo !== undefined) return yield* sendElsewhere(job, selection.sendTo, items)
  const end =
    "waiting" in selection ? "CancelMessage" : "dismiss" in selection && selection.dismiss ? "DismissMessage" : null
  const answers = yield* commandMessages(
    items,
    (item, stream) => (end === null ? replayItem(job, item, stream) : endItem(job.reason, end, item, stream)),
    { tries: Number.POSITIVE_INFINITY }
  ).pipe(Effect.catchTag("Overtaken", Effect.die))
  return answers.filter((answer) => answer === "replayed").length
})

/** Replays the message, unless this job did before or it can't be replayed. */
const replayItem = Effect.fnUntraced(function* (
  { id, reason }: ReplayJob,
  { messageId, epoch }: DeadItem,
  stream: Stream | undefined
): Effect.fn.Return<Decision<Append, "replayed" | "skipped">> {
  if (stream === undefined) return { entry: null, answer: "skipped" }
  const facts = stream.facts.map(({ fact }) => fact)
  const reopened = facts.find((fact) => fact.type === "MessageReplayed" && fact.epoch === epoch + 1)
  if (reopened?.type === "MessageReplayed") {
    return { entry: null, answer: reopened.replayId === id ? "replayed" : "skipped" }
  }
  const message = replay(facts)
  const now = yield* DateTime.now
  const decided = decide(message, { type: "ReplayMessage", now, reason, replayId: id })
  if (Result.isFailure(decided)) return { entry: null, answer: "skipped" }
  return { entry: entryOf(messageId, message, stream.version, decided.success, now).entry, answer: "replayed" }
})

/** Cancels or dismisses the message, unless that was done before or it has gone on. */
const endItem = Effect.fnUntraced(function* (
  reason: string | null,
  type: "CancelMessage" | "DismissMessage",
  { messageId, epoch }: DeadItem,
  stream: Stream | undefined
): Effect.fn.Return<Decision<Append, "replayed" | "skipped">> {
  if (stream === undefined) return { entry: null, answer: "skipped" }
  const message = replay(stream.facts.map(({ fact }) => fact))
  if (message.progress.epoch !== epoch) return { entry: null, answer: "skipped" }
  if (type === "CancelMessage" && message.status === "CANCELLED") return { entry: null, answer: "replayed" }
  const decided = decide(message, { type, reason })
  if (Result.isFailure(decided)) return { entry: null, answer: "skipped" }
  const facts = decided.success
  const entry =
    facts.length === 0 ? null : entryOf(messageId, message, stream.version, facts, yield* DateTime.now).entry
  return { entry, answer: "replayed" }
})

/** Half as long as the step has waited: a look reads 500 streams. */
const lookPause = Effect.fnUntraced(function* ({ lastAt }: Snapshot) {
  const waited = Duration.divideUnsafe(DateTime.distance(lastAt, yield* DateTime.now), 2)
  return Duration.clamp(waited, { minimum: PAUSE, maximum: LOOK_PAUSE_MAX })
})

const mustWait = Effect.fnUntraced(function* ({ job, replay, lastAt }: Snapshot) {
  const { cursor } = progressOf(replay)
  const { selection } = job
  // These put nothing into the lanes that the items come from.
  if ("waiting" in selection || "dismiss" in selection || "sendTo" in selection) return false
  if (cursor === 0 || Duration.isGreaterThan(DateTime.distance(lastAt, yield* DateTime.now), PATIENCE)) return false
  const from = Math.max(0, cursor - ROWS_MAX)
  const items = yield* (yield* Replays).items(job.id, from, cursor - from)
  const { of: fingerprint } = yield* Fingerprint
  const ids = items.flatMap((item) => {
    if ("messageId" in item) return [item.messageId]
    return "missed" in selection ? [messageIdOf(item.eventId, selection.missed.to, fingerprint)] : []
  })
  const streams = yield* Effect.catchDefect((yield* EventStore).loadMany(ids), () =>
    Effect.succeed<ReadonlyMap<MessageId, Stream>>(new Map())
  )
  const untouched = [...streams.values()].filter(({ facts }) => {
    const last = facts.at(-1)?.fact.type
    return last === "MessageReplayed" || last === "MessageQueued"
  })
  return untouched.length > items.length / 2
})

/** Any number of processes may run it: one of them at a time takes each replay. */
export const replayDeadLetters = backgroundOn(
  "jobs",
  "replaying dead letters",
  Effect.tap(Effect.suspend(replayOnce), (worked) => (worked ? Effect.sleep(PAUSE) : Effect.void))
)
