/**
 * Requests, lists and cancels replays and the other jobs over many messages. A request is stored here, and from then on
 * happens whatever crashes (replayDeadLetters.ts). It is for what was dead or missed at the request; the request
 * searches for a short while, so that the answer mostly has the number.
 */
import { DateTime, Duration, Effect, Option, Result, Schema } from "effect"
import { fulfils } from "../../domain/event/eventTypes.ts"
import { type MessageId, type OrgId, ReplayId } from "../../domain/ids.ts"
import type { MessageStatus } from "../../domain/message/machine.ts"
import { isDead, type MessageView, viewOf } from "../../domain/message/view.ts"
import { decide, progressOf, type Replay, type ReplayCommand, replay, statusOf } from "../../domain/replay/decider.ts"
import {
  type DeadLetterSelection,
  fromRecorded,
  type ReplayFact,
  ReplaySelection,
  toRecorded
} from "../../domain/replay/facts.ts"
import type { ReplayStatus } from "../../domain/replay/machine.ts"
import { sortedEntries } from "../canonicalJson.ts"
import { appendToJournal, command } from "../command.ts"
import { newMessageIds } from "../messageIds.ts"
import { type Destination, Destinations } from "../ports/Destinations.ts"
import { EventStore, type StreamVersion } from "../ports/EventStore.ts"
import { Events } from "../ports/Events.ts"
import type { PageRequest, StoreUnavailable } from "../ports/errors.ts"
import { Fingerprint } from "../ports/Fingerprint.ts"
import { type JournalFact, type JournalName, Journals } from "../ports/Journals.ts"
import { MessageViews } from "../ports/MessageViews.ts"
import { Pulse } from "../ports/Pulse.ts"
import { type DeadItem, type ReplayJob, type ReplaySet, Replays } from "../ports/Replays.ts"

export interface ReplayView extends ReplayJob {
  readonly status: ReplayStatus
  readonly replayed: number
  readonly skipped: number
  readonly endedAt: DateTime.Utc | null
}

export interface Outcome {
  readonly arrived: number
  readonly sent: number
  readonly failed: number
  readonly waiting: number
  readonly ended: number
}

export class ReplayNotFound extends Schema.TaggedError<ReplayNotFound>()("ReplayNotFound", { id: Schema.String }) {}

export class ReplayKeyReused extends Schema.TaggedError<ReplayKeyReused>()("ReplayKeyReused", {}) {}

export const previewReplay = Effect.fnUntraced(function* (orgId: OrgId, selection: DeadLetterSelection) {
  if ("filter" in selection) return yield* (yield* MessageViews).countDeadLetters(orgId, selection.filter)
  const dead = yield* deadAmong(orgId, selection.ids)
  return { matched: dead.length, contradicted: dead.filter(({ contradicted }) => contradicted).length }
})

export const requestReplay = Effect.fnUntraced(function* (
  orgId: OrgId,
  selection: ReplaySelection,
  { reason, idempotencyKey }: { readonly reason: string | null; readonly idempotencyKey: string | null }
) {
  const requestHash = (yield* Fingerprint).of(canonicalText(selection, reason))
  const [id] = yield* newMessageIds(1)
  const result = yield* (yield* Replays).open({
    id: ReplayId.make(id!),
    orgId,
    selection,
    reason,
    requestedAt: yield* DateTime.now,
    set: yield* setOf(orgId, selection),
    idempotency: idempotencyKey === null ? null : { key: idempotencyKey, requestHash }
  })
  yield* (yield* Pulse).wake("jobs")
  if (result.type === "DuplicateKey" && result.requestHash !== requestHash) return yield* new ReplayKeyReused()
  // It is stored: a search that fails is no refusal.
  const job = yield* searchAWhile(result.job).pipe(
    Effect.catchTag("StoreUnavailable", () => Effect.succeed(result.job))
  )
  return yield* viewOfJob(job)
})

const ROWS_MAX = 1_000
/** On two cores 150,000 dead letters were found in less. */
const A_WHILE = Duration.seconds(2)

/** The job when its search is over, or after a while. */
export const searchAWhile = Effect.fnUntraced(function* (job: ReplayJob) {
  if (!job.searching) return job
  const replays = yield* Replays
  const searched = yield* Effect.suspend(() => replays.search(job, ROWS_MAX)).pipe(
    Effect.repeat({ while: ({ searching }) => searching }),
    Effect.timeoutOption(A_WHILE)
  )
  return Option.isSome(searched) ? searched.value : ((yield* replays.get(job.orgId, job.id)) ?? job)
})

const setOf = Effect.fnUntraced(function* (
  orgId: OrgId,
  selection: ReplaySelection
): Effect.fn.Return<ReplaySet, StoreUnavailable, Destinations | Events | EventStore> {
  if ("filter" in selection || "waiting" in selection) return selection
  if ("ids" in selection) return { items: (yield* deadAmong(orgId, selection.ids)).map(itemOf) }
  const destination = yield* (yield* Destinations).get(orgId, selection.missed.to)
  const wishes = destination === null ? [] : wishesOf(destination)
  const types = yield* (yield* Events).types(orgId)
  return { missed: { ...selection.missed, eventTypes: types.filter((type) => fulfils(type, wishes)) } }
})

/** A destination without the setting wants no events. */
const wishesOf = ({ settings }: Destination): ReadonlyArray<string> | null =>
  "eventTypes" in settings ? (settings.eventTypes as ReadonlyArray<string> | null) : []

export const readReplay = Effect.fnUntraced(function* (orgId: OrgId, id: ReplayId) {
  const job = yield* jobOf(orgId, id)
  const view = yield* viewOfJob(job)
  const outcome = sendsNothing(job.selection) ? null : outcomeOf(yield* (yield* MessageViews).ofReplay(id))
  return { ...view, outcome }
})

export const sendsNothing = (selection: ReplaySelection): boolean => "waiting" in selection || "dismiss" in selection

const outcomeOf = (counts: ReadonlyMap<MessageStatus, number>): Outcome => {
  const of = (...statuses: ReadonlyArray<MessageStatus>) =>
    statuses.reduce((sum, status) => sum + (counts.get(status) ?? 0), 0)
  return {
    arrived: of("DELIVERED"),
    sent: of("SENT"),
    failed: of("FAILED", "DEAD_LETTER"),
    waiting: of("QUEUED", "SENDING"),
    ended: of("CANCELLED", "EXPIRED")
  }
}

export const listReplays = Effect.fnUntraced(function* (orgId: OrgId, page: PageRequest) {
  const { items, nextCursor } = yield* (yield* Replays).list(orgId, page)
  return { items: yield* Effect.forEach(items, viewOfJob, { concurrency: 4 }), nextCursor }
})

/**
 * Replayed messages stay replayed, and the step under way may complete. A search ends with the items so far; if the
 * process stops right then, the replay of these goes on until it is cancelled again.
 */
export const cancelReplay = Effect.fnUntraced(function* (orgId: OrgId, id: ReplayId, reason: string | null) {
  const { searching } = yield* jobOf(orgId, id)
  if (searching) yield* (yield* Replays).endSearch(id)
  return viewIn(yield* commandReplay(yield* jobOf(orgId, id), { type: "CancelReplay", reason }))
})

const jobOf = Effect.fnUntraced(function* (orgId: OrgId, id: ReplayId) {
  const job = yield* (yield* Replays).get(orgId, id)
  return job ?? (yield* new ReplayNotFound({ id }))
})

/** The org's dead letters among these messages, in the order they were accepted. */
const deadAmong = Effect.fnUntraced(function* (orgId: OrgId, ids: ReadonlyArray<MessageId>) {
  const streams = yield* (yield* EventStore).loadMany([...new Set(ids)])
  return [...streams]
    .flatMap(([id, { facts }]) => {
      const view = viewOf(id, facts)
      return view !== null && view.orgId === orgId && isDead(view.status) ? [view] : []
    })
    .toSorted((a, b) => DateTime.Order(a.createdAt, b.createdAt) || (a.id < b.id ? -1 : 1))
})

const itemOf = ({ id, epoch }: MessageView): DeadItem => ({ messageId: id, epoch })

const canonicalText = (selection: ReplaySelection, reason: string | null): string => {
  const { dismiss, sendTo, ...asked } = Schema.encodeSync(ReplaySelection)(selection) as Record<string, unknown>
  const [[kind, said]] = Object.entries(asked) as unknown as readonly [readonly [string, object]]
  const parts = Array.isArray(said) ? said.toSorted() : sortedEntries(said)
  const instead = dismiss === undefined && sendTo === undefined ? [] : [dismiss ?? sendTo]
  return JSON.stringify([kind, parts, reason, ...instead])
}

interface TimedFact {
  readonly at: DateTime.Utc
  readonly fact: ReplayFact
}

export interface Snapshot {
  readonly job: ReplayJob
  readonly history: ReadonlyArray<TimedFact>
  readonly replay: Replay
  readonly version: StreamVersion
  readonly lastAt: DateTime.Utc
  readonly endedAt: DateTime.Utc | null
}

const journalOf = ({ id }: ReplayJob): JournalName => `replay-${id}`

/** The first process that meets a replay when its search is over begins its journal. */
export const loadReplay = (job: ReplayJob) =>
  command(
    {
      load: Effect.flatMap(Journals, (journals) => journals.load(journalOf(job))),
      decide: (history: ReadonlyArray<JournalFact>) => {
        if (history.length > 0) return Effect.succeed({ entry: null, answer: snapshotOf(job, history.map(decoded)) })
        const { orgId, selection, reason, matched, requestedAt: at } = job
        const request = { type: "ReplayRequested", orgId, selection, reason, matched, requestedAt: at } as const
        const facts = Result.getOrThrow(decide(replay([]), { type: "RequestReplay", request }))
        const answer = snapshotOf(
          job,
          facts.map((fact) => ({ at, fact }))
        )
        return Effect.succeed({ entry: { expected: 0, facts: facts.map(toRecorded), at }, answer })
      },
      append: appendToJournal(journalOf(job))
    },
    untilFirst
  ).pipe(Effect.catchTag("Overtaken", Effect.die))

export const commandReplay = (job: ReplayJob, replayCommand: ReplayCommand) =>
  command(
    {
      load: loadReplay(job),
      decide: Effect.fnUntraced(function* ({ history, replay, version }: Snapshot) {
        const facts = yield* Effect.fromResult(decide(replay, replayCommand))
        const at = yield* DateTime.now
        const answer = snapshotOf(job, [...history, ...facts.map((fact) => ({ at, fact }))])
        return { entry: facts.length === 0 ? null : { expected: version, facts: facts.map(toRecorded), at }, answer }
      }),
      append: appendToJournal(journalOf(job))
    },
    untilFirst
  ).pipe(Effect.catchTag("Overtaken", Effect.die))

const untilFirst = { tries: Number.POSITIVE_INFINITY }

const decoded = (stored: JournalFact): TimedFact => ({ at: stored.at, fact: Result.getOrThrow(fromRecorded(stored)) })

const snapshotOf = (job: ReplayJob, history: ReadonlyArray<TimedFact>): Snapshot => ({
  job,
  history,
  replay: replay(history.map(({ fact }) => fact)),
  version: history.length,
  lastAt: history.at(-1)!.at,
  endedAt: history.find(({ fact: { type } }) => type === "ReplayCompleted" || type === "ReplayCancelled")?.at ?? null
})

const viewOfJob = (job: ReplayJob) =>
  job.searching
    ? Effect.succeed<ReplayView>({ ...job, status: "RUNNING", replayed: 0, skipped: 0, endedAt: null })
    : Effect.map(loadReplay(job), viewIn)

const viewIn = ({ job, replay, endedAt }: Snapshot): ReplayView => {
  const { replayed, skipped } = progressOf(replay)
  return { ...job, status: statusOf(replay) as ReplayStatus, replayed, skipped, endedAt }
}
