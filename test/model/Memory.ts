/**
 * The "database" of the memory adapters: plain tables that every memory port reads and writes.
 *
 * It promises what a transaction promises, by the simplest means there is: JavaScript runs one step at a
 * time, so a change made without an `await` or a `yield*` in its middle is seen whole or not at all. Every
 * port therefore does its work in one synchronous step.
 *
 * Time is the clock the store was built with, not the caller's: leases are judged by the store. It leaves
 * out durability. Nothing outlives the process, and nothing is ever trimmed.
 */
import { Clock, Context, DateTime, Effect, Layer, type Redacted } from "effect"
import type { ApiKey } from "../../src/application/ports/ApiKeys.ts"
import type { GivenCommand, RefusedCommand } from "../../src/application/ports/CommandInbox.ts"
import type { Destination, PreviousSecret, Secrets } from "../../src/application/ports/Destinations.ts"
import type { ErasureJob } from "../../src/application/ports/Erasures.ts"
import type { AttemptResponse } from "../../src/application/ports/EventStore.ts"
import type { KeyOfEvent } from "../../src/application/ports/Events.ts"
import type { EventType } from "../../src/application/ports/EventTypes.ts"
import type { Follower, Notice } from "../../src/application/ports/Followers.ts"
import type { JournalFact, JournalName } from "../../src/application/ports/Journals.ts"
import type { OrgSettings } from "../../src/application/ports/Orgs.ts"
import type { ParkedStream } from "../../src/application/ports/Parked.ts"
import type { Run } from "../../src/application/ports/Projections.ts"
import type { AbandonedMessage, BatchId } from "../../src/application/ports/Queue.ts"
import type { HeldReceipt } from "../../src/application/ports/ReceiptInbox.ts"
import type { ReplayItem, ReplayJob, ReplaySet } from "../../src/application/ports/Replays.ts"
import type { DestinationId, EventId, MessageId, OrgId, ReplayId } from "../../src/domain/ids.ts"
import type { MessageView } from "../../src/domain/message/view.ts"
import type { RecordedFact } from "../../src/domain/recorded.ts"
import type { LaneRow } from "./deliver/lanes.ts"
import type { Turn } from "./deliver/lines.ts"
import type { HealthRow } from "./destinations/MemoryDestinationHealth.ts"
import type { RegisteredProcess } from "./processes/MemoryProcesses.ts"

export interface StoredRow extends RecordedFact {
  readonly at: DateTime.Utc
  readonly actor: string | null
}

/** The lease of one batch. That the row exists is the fence; `until` only says when others may take it over. */
export interface ClaimRow {
  readonly worker: string
  readonly until: DateTime.Utc
  readonly messages: ReadonlyArray<AbandonedMessage>
}

/** The last that a search looked at. */
export interface Found {
  readonly at: DateTime.Utc
  readonly id: string
}

export interface ReplayRow {
  job: ReplayJob
  idempotency: { readonly key: string; readonly requestHash: string } | null
  items: ReadonlyArray<ReplayItem>
  /** What the search goes by; null once it is over. */
  search: { readonly set: ReplaySet; readonly after: Found | null } | null
  /** Null once it is closed. */
  nextAt: DateTime.Utc | null
}

export interface EventRow {
  readonly orgId: OrgId
  readonly at: DateTime.Utc
  readonly messages: Map<DestinationId, MessageId>
}

/** Commands of callers' own transactions, also of those that are open; what is rolled back is taken out again. */
export interface SqlCommands {
  readonly given: Array<{ readonly tx: number; readonly at: DateTime.Utc; readonly command: GivenCommand }>
  readonly open: Set<number>
  nextTx: number
  readonly refused: Map<string, RefusedCommand & { readonly published: boolean }>
  /** Who moves them, and until when. */
  holder: string | null
  until: DateTime.Utc | null
}

export interface DestinationRow {
  readonly destination: Destination
  readonly secrets: Secrets
  readonly previousSecrets: ReadonlyArray<PreviousSecret>
  readonly publicKey: string | null
  readonly lookup: Redacted.Redacted | null
  /** The row stays, because circuits and alerts ask whose it was. */
  readonly removed: boolean
}

export interface FollowerRow {
  readonly begun: boolean
  readonly position: string | null
  readonly holder: string | null
  readonly until: DateTime.Utc | null
}

export interface Tables {
  readonly streams: Map<MessageId, Array<StoredRow>>
  /** Every fact in the order it was committed; a position is a place in this list. */
  readonly feed: Array<{ readonly stream: string; readonly messageId: MessageId | null; readonly version: number }>
  readonly journals: Map<string, ReadonlyArray<JournalFact>>
  /** The whole first fact of each message, as JSON text. */
  readonly messages: Map<MessageId, string>
  readonly bodies: Map<MessageId, string>
  readonly eventBodies: Map<EventId, string>
  /** By org and name. */
  readonly eventTypes: Map<string, EventType>
  readonly eventKeys: Map<string, KeyOfEvent>
  /** Messages whose body is that of their event. */
  readonly sharing: Map<MessageId, EventId>
  readonly events: Map<EventId, EventRow>
  /** By epoch and attempt, each with the version of its fact. */
  readonly responses: Map<
    MessageId,
    Map<string, Pick<AttemptResponse, "body" | "headers"> & { readonly version: number }>
  >
  readonly idempotencyKeys: Map<string, { readonly messageId: MessageId; readonly requestHash: string }>
  /**
   * What waits, per lane, in the order it will be handed out. The order of the lanes is the order of their
   * turns: a lane that was just visited goes to the end.
   */
  readonly lanes: Map<DestinationId, Array<AbandonedMessage>>
  /** Who stands in line behind whom, per lane and ordering key (see lines.ts). */
  readonly lines: Map<string, ReadonlyArray<Turn>>
  /** What lanes may hand out, where anything was said about it. */
  readonly laneRows: Map<DestinationId, LaneRow>
  readonly claims: Map<BatchId, ClaimRow>
  /** Messages that can't be processed; `againAt` null: they are tried again. */
  readonly destinations: Map<DestinationId, DestinationRow>
  readonly orgs: Map<OrgId, OrgSettings & { readonly updatedAt: DateTime.Utc }>
  readonly apiKeys: Map<string, ApiKey & { readonly keyHash: string; readonly revoked: boolean }>
  readonly receipts: Map<string, { receipt: HeldReceipt; dueAt: DateTime.Utc; parkedAt: DateTime.Utc | null }>
  /** Rows of `messages`, by generation. */
  readonly views: Map<number, Map<MessageId, MessageView>>
  /** By generation and destination. */
  readonly health: Map<number, Map<DestinationId, HealthRow>>
  readonly runs: Array<Run>
  /** By reader, generation and stream. */
  readonly parked: Map<string, ParkedStream>
  readonly replays: Map<ReplayId, ReplayRow>
  readonly followers: Map<Follower, FollowerRow>
  /** What alerting told of lately. */
  readonly notices: Map<string, Notice>
  readonly erasures: Map<string, ErasureJob & { readonly nextAt: DateTime.Utc }>
  readonly processes: Map<string, RegisteredProcess>
  readonly sqlCommands: SqlCommands
  /** Names batches: it never goes back, whatever a crash takes. */
  batchesMade: number
  /** Due work was put in the queue and nobody was told yet. */
  hasNews: boolean
}

export class Memory extends Context.Service<
  Memory,
  {
    readonly tables: Tables
    readonly now: () => DateTime.Utc
    /** Called after each change that puts due work in the queue. */
    readonly onDueWork: Set<() => void>
  }
>()("posthaste/test/model/Memory") {}

/** The body of a message: its own, or that of its event. */
export const bodyIn = ({ bodies, sharing, eventBodies }: Tables, id: MessageId): string | null => {
  const event = sharing.get(id)
  return bodies.get(id) ?? (event === undefined ? null : (eventBodies.get(event) ?? null))
}

export const eraseIn = ({ bodies, sharing, responses }: Tables, id: MessageId): boolean =>
  [bodies.delete(id), sharing.delete(id), responses.delete(id)].includes(true)

/** The version of the last fact of a journal; 0 where there is none. */
export const versionOf = ({ journals }: Tables, journal: string): number => journals.get(journal)?.at(-1)?.version ?? 0

/** A fact that stands in the feed; undefined once it is forgotten. */
export const factAt = (
  { journals, streams }: Tables,
  { stream, messageId, version }: Tables["feed"][number]
): StoredRow | undefined => {
  if (messageId !== null) return streams.get(messageId)?.[version - 1]
  const facts = journals.get(stream)
  return facts?.[version - (facts[0]?.version ?? 1)]
}

/** On top of what is there: whoever calls has looked. */
export const addToJournal = (
  tables: Tables,
  journal: JournalName,
  facts: ReadonlyArray<RecordedFact>,
  at: DateTime.Utc,
  actor: string | null,
  last = versionOf(tables, journal)
): void => {
  const { journals, feed } = tables
  const history = journals.get(journal) ?? []
  const added = facts.map(({ name, data, forgettable = null }, index) => ({
    name,
    data,
    forgettable,
    at,
    actor,
    version: last + index + 1
  }))
  journals.set(journal, [...history, ...added])
  for (const { version } of added) feed.push({ stream: journal, messageId: null, version })
}

/** Live, and nothing in it yet. */
export const firstRun = (name: string, version: number, startedAt: DateTime.Utc): Run => ({
  name,
  generation: 1,
  version,
  live: true,
  position: null,
  facts: 0,
  total: 0,
  factsPerSecond: null,
  startedAt
})

/** A fresh, empty store. */
export const layer = Layer.effect(
  Memory,
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = () => DateTime.makeUnsafe(clock.currentTimeMillisUnsafe())
    return Memory.of({
      tables: {
        streams: new Map(),
        feed: [],
        journals: new Map(),
        messages: new Map(),
        bodies: new Map(),
        sharing: new Map(),
        events: new Map(),
        eventBodies: new Map(),
        eventKeys: new Map(),
        eventTypes: new Map(),
        responses: new Map(),
        idempotencyKeys: new Map(),
        lanes: new Map(),
        lines: new Map(),
        laneRows: new Map(),
        claims: new Map(),
        destinations: new Map(),
        orgs: new Map(),
        apiKeys: new Map(),
        receipts: new Map(),
        views: new Map(),
        health: new Map(),
        runs: [firstRun("messages", 1, now())],
        parked: new Map(),
        erasures: new Map(),
        replays: new Map(),
        followers: new Map(),
        notices: new Map(),
        processes: new Map(),
        sqlCommands: { given: [], open: new Set(), nextTx: 1, refused: new Map(), holder: null, until: null },
        batchesMade: 0,
        hasNews: false
      },
      now,
      onDueWork: new Set()
    })
  })
)
