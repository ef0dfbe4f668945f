/**
 * Stores that break one promise on purpose, some always and some now and then, the way a real one would. Where the
 * promise is the application's, the store undoes what the application did right.
 */
import { Context, DateTime, Duration, Effect, Result } from "effect"
import { Bodies } from "../../src/application/ports/Bodies.ts"
import { Circuits } from "../../src/application/ports/Circuits.ts"
import { DerivedRows } from "../../src/application/ports/DerivedRows.ts"
import { Destinations } from "../../src/application/ports/Destinations.ts"
import { type Append, EventStore, type Stream } from "../../src/application/ports/EventStore.ts"
import { MessageViews } from "../../src/application/ports/MessageViews.ts"
import { Parked } from "../../src/application/ports/Parked.ts"
import { type ClaimedMessage, Queue } from "../../src/application/ports/Queue.ts"
import { Replays } from "../../src/application/ports/Replays.ts"
import { attemptsMaxOf, retryWaitMs } from "../../src/domain/delivery/retry.ts"
import type { MessageId } from "../../src/domain/ids.ts"
import { fromRecorded } from "../../src/domain/message/recorded.ts"
import { streamOf } from "../../src/domain/streams.ts"
import { changeLane, laneOf } from "../model/deliver/lanes.ts"
import { stepOut } from "../model/deliver/lines.ts"
import { putWaiting } from "../model/deliver/waiting.ts"
import { Memory } from "../model/Memory.ts"
import { EPOCH } from "./clock.ts"
import type { Sabotage, Store, Tools } from "./world.ts"

/** A store whose appends are changed before they are done. */
const appending =
  (change: (entry: Append, store: Store) => Append): Sabotage =>
  (store) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) => Effect.suspend(() => real.append(entries.map((entry) => change(entry, store))))
    })
  }

/** A store whose queue answers some calls in its own way. */
const queueing =
  (change: (queue: Queue["Service"], store: Store, tools: Tools) => Partial<Queue["Service"]>): Sabotage =>
  (store, tools) => {
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, { ...real, ...change(real, store, tools) })
  }

/** A store that does something else to the lanes it has just handed out from. */
const claiming = (change: (claimed: ReadonlyArray<ClaimedMessage>, memory: Memory["Service"]) => void): Sabotage =>
  queueing((queue, store) => ({
    claim: (request) =>
      Effect.tap(queue.claim(request), (claim) =>
        Effect.sync(() => change(claim?.messages ?? [], Context.get(store, Memory)))
      )
  }))

/** A store that brings back what was parked in its own way. */
const restoring =
  (
    change: (restore: DerivedRows["Service"]["restoreQueue"], store: Store) => DerivedRows["Service"]["restoreQueue"]
  ): Sabotage =>
  (store) => {
    const real = Context.get(store, DerivedRows)
    return Context.add(store, DerivedRows, { ...real, restoreQueue: change(real.restoreQueue, store) })
  }

/** Deferrals after the fifth of their epoch; `change` is told how long they wait, beyond the wish of the receiver. */
const puttingOff =
  (change: (waitMs: number) => number) =>
  (entry: Append, store: Store): Append => {
    const { messageId, queue, at } = entry
    const [fact] = entry.facts
    const names = (Context.get(store, Memory).tables.streams.get(messageId) ?? []).map(({ name }) => name)
    const before = names.slice(names.findLastIndex((name) => name.startsWith("MessageReplayed@")) + 1)
    const times = before.filter((name) => name.startsWith("AttemptDeferred@")).length
    if (fact?.type !== "AttemptDeferred" || queue?.type !== "Wait" || times < 5) return entry
    const dueAt = DateTime.add(at, { milliseconds: change(DateTime.distance(at, fact.dueAt).pipe(Duration.toMillis)) })
    return { ...entry, facts: [{ ...fact, dueAt }], queue: { ...queue, dueAt } }
  }

/** By what each gets wrong. */
export const mutants = {
  "ignores the fence": appending((entry) => ({ ...entry, fence: null })),

  "ignores the gate of a circuit": appending((entry) => ({ ...entry, gate: null })),

  "ignores the expected version": appending((entry, store) => ({
    ...entry,
    expected: Context.get(store, Memory).tables.streams.get(entry.messageId)?.length ?? 0
  })),

  "forgets idempotency keys": appending((entry) => ({
    ...entry,
    opening: entry.opening === null ? null : { ...entry.opening, idempotency: null }
  })),

  "reads the numbers of a body": appending((entry) => ({
    ...entry,
    opening:
      typeof entry.opening?.body === "string"
        ? { ...entry.opening, body: JSON.stringify(JSON.parse(entry.opening.body)) }
        : entry.opening
  })),

  "makes retries due at once": appending((entry) => ({
    ...entry,
    queue:
      entry.queue?.type === "Wait" && entry.expected > 0
        ? { ...entry.queue, dueAt: DateTime.makeUnsafe(EPOCH) }
        : entry.queue
  })),

  "loses the queue change of an append": appending((entry) => ({
    ...entry,
    queue: entry.expected > 0 ? null : entry.queue
  })),

  "answers an append before it is safe, and loses some": (store, { dice }) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.suspend(() =>
          dice.chance(0.02)
            ? Effect.succeed(
                entries.map(({ expected, facts }) => ({ type: "Appended", version: expected + facts.length }) as const)
              )
            : real.append(entries)
        )
    })
  },

  "writes the start of an attempt a moment after it said so": (store, { timeline }) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.suspend(() => {
          if (entries[0]?.facts[0]?.type !== "AttemptStarted") return real.append(entries)
          timeline.after(20, () => void Effect.runSync(real.append(entries)))
          return Effect.succeed(entries.map(({ expected }) => ({ type: "Appended", version: expected + 1 }) as const))
        })
    })
  },

  "hands some messages out twice": (store, { dice }) => {
    const memory = Context.get(store, Memory)
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, {
      ...real,
      claim: (request) =>
        Effect.tap(real.claim(request), (claim) =>
          Effect.sync(() => {
            if (claim !== null && dice.chance(0.05)) putWaiting(memory, claim.messages[0]!)
          })
        )
    })
  },

  "takes leases over that still live": (store) => {
    const { tables } = Context.get(store, Memory)
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, {
      ...real,
      takeOver: (worker, lease, batchesMax) =>
        Effect.suspend(() => {
          for (const [batch, claim] of tables.claims) {
            tables.claims.set(batch, { ...claim, until: DateTime.makeUnsafe(EPOCH) })
          }
          return real.takeOver(worker, lease, batchesMax)
        })
    })
  },

  "keeps the old claim when a batch is taken over": (store) => {
    const { tables } = Context.get(store, Memory)
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, {
      ...real,
      takeOver: (worker, lease, batchesMax) =>
        Effect.suspend(() => {
          const before = [...tables.claims]
          return Effect.tap(real.takeOver(worker, lease, batchesMax), () =>
            Effect.sync(() => {
              for (const [batch, claim] of before) tables.claims.set(batch, claim)
            })
          )
        })
    })
  },

  "forgets what a release puts back": (store) => {
    const real = Context.get(store, Queue)
    return Context.add(store, Queue, { ...real, release: (batch) => real.release(batch, []) })
  },

  "skips a fact in the feed": (store, { dice }) => {
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      readAll: (after, limit) =>
        Effect.map(real.readAll(after, limit), (facts) =>
          facts.length > 1 && dice.chance(0.2) ? facts.toSpliced(0, 1) : facts
        )
    })
  },

  "moves the projection on without its rows": (store, { dice }) => {
    const real = Context.get(store, MessageViews)
    return Context.add(store, MessageViews, {
      ...real,
      project: (step, views) => real.project(step, dice.chance(0.2) ? [] : views)
    })
  },

  "takes a batch over under its old name": queueing((queue, store) => {
    const { claims } = Context.get(store, Memory).tables
    return {
      takeOver: (worker, lease, batchesMax) =>
        Effect.suspend(() => {
          const before = [...claims]
          return Effect.map(queue.takeOver(worker, lease, batchesMax), (batches) =>
            batches.map(({ batch, messages }) => {
              const [old] = before.find(([_, claim]) => claim.messages === messages)!
              claims.set(old, claims.get(batch)!)
              claims.delete(batch)
              return { batch: old, messages }
            })
          )
        })
    }
  }),

  "renews whatever a living worker was ever given": queueing((queue, store) => {
    const { tables, now } = Context.get(store, Memory)
    return {
      takeOver: (worker, lease, batchesMax) =>
        Effect.suspend(() => {
          for (const [batch, claim] of tables.claims) {
            const until = DateTime.addDuration(now(), lease)
            if (claim.worker === worker) tables.claims.set(batch, { ...claim, until })
          }
          return queue.takeOver(worker, lease, batchesMax)
        })
    }
  }),

  "answers that messages are back before that is on the disk": (store, { commits }) => {
    commits.asynchronous.add("putBack")
    return store
  },

  "gives the name of a batch again": queueing((queue, store) => {
    const { tables } = Context.get(store, Memory)
    const goBack = Effect.sync(() => {
      tables.batchesMade = Math.max(0, ...[...tables.claims.keys()].map(Number))
    })
    return {
      claim: (request) => Effect.andThen(goBack, queue.claim(request)),
      takeOver: (worker, lease, batchesMax) => Effect.andThen(goBack, queue.takeOver(worker, lease, batchesMax))
    }
  }),

  "forgets what is put back": queueing(() => ({ putBack: () => Effect.void })),

  "forgets that a lane was deferred": queueing(() => ({ deferLane: () => Effect.void })),

  "counts nothing against a rate limit": claiming((claim, { tables }) => {
    for (const { lane } of claim) changeLane(tables, lane, { nextAt: null })
  }),

  "gives a probe a permit that never ends": claiming((claim, { tables }) => {
    for (const { lane, terms } of claim) {
      const blockedUntil = DateTime.makeUnsafe(EPOCH + 365 * 24 * 3_600_000)
      if (terms.circuitMode === "probe")
        changeLane(tables, lane, { state: { ...laneOf(tables, lane).state, blockedUntil } })
    }
  }),

  "lets a second probe through": queueing((queue, store) => {
    const { tables } = Context.get(store, Memory)
    return {
      claim: (request) =>
        Effect.suspend(() => {
          for (const lane of tables.lanes.keys()) {
            const { state } = laneOf(tables, lane)
            const blockedUntil = DateTime.makeUnsafe(EPOCH)
            if (state.status === "HALF_OPEN") changeLane(tables, lane, { state: { ...state, blockedUntil } })
          }
          return queue.claim(request)
        })
    }
  }),

  "hands out what is held": (store) => {
    const real = Context.get(store, Circuits)
    return Context.add(store, Circuits, {
      ...real,
      append: (destination, generation, facts, after, actor) =>
        real.append(
          destination,
          generation,
          facts,
          after.status === "HELD" ? { ...after, status: "CLOSED" } : after,
          actor
        )
    })
  },

  "goes on although it is paused": (store) => {
    const { tables } = Context.get(store, Memory)
    const real = Context.get(store, Destinations)
    return Context.add(store, Destinations, {
      ...real,
      setPaused: (kind, orgId, id, paused, reason) =>
        Effect.tap(real.setPaused(kind, orgId, id, paused, reason), () =>
          Effect.sync(() => changeLane(tables, id, { paused: false }))
        )
    })
  },

  "hands out the second of a line beside the first": (store) => {
    const memory = Context.get(store, Memory)
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.tap(real.append(entries), () =>
          Effect.sync(() => {
            for (const [_, second] of memory.tables.lines.values()) {
              if (second?.state === "WAITING") putWaiting(memory, second.message)
            }
          })
        )
    })
  },

  "sends a retry to the end of its line": appending((entry, store) => {
    const { queue, messageId, fence } = entry
    const memory = Context.get(store, Memory)
    const isRetry = queue?.type === "Wait" && queue.line !== null && queue.attempt > 0
    if (isRetry && fence !== null && memory.tables.claims.has(fence)) {
      stepOut(memory, queue.lane, queue.line!, messageId, false)
    }
    return entry
  }),

  "lets a dead letter step aside although it blocks": appending((entry) => ({
    ...entry,
    queue: entry.queue?.type === "LeaveLine" ? { ...entry.queue, dead: false } : entry.queue
  })),

  "keeps a line blocked although its dead letter was replayed": appending((entry) => ({
    ...entry,
    queue:
      entry.queue?.type === "Wait" && entry.facts[0]?.type === "MessageReplayed"
        ? { ...entry.queue, line: null }
        : entry.queue
  })),

  "puts off again and again for as short as it is asked": appending(puttingOff(() => 0)),

  "puts off longer each time, but never longer than three seconds": appending(
    puttingOff((waitMs) => Math.min(waitMs, 3_000))
  ),

  "gives up what was sent when no receipt comes": (store, { timeline }) => {
    const { streams } = Context.get(store, Memory).tables
    const real = Context.get(store, EventStore)
    const giveUp = ({ messageId, at }: Append, version: number) => {
      if (streams.get(messageId)?.length !== version) return
      const error = { code: "no_receipt", message: "no receipt came", retryable: true }
      const facts = [{ type: "MessageFailed", by: "receipt", error }] as const
      const free = { fence: null, gate: null, queue: null, opening: null, response: null }
      Effect.runSync(real.append([{ messageId, at, actor: null, expected: version, facts, ...free }]))
    }
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.tap(real.append(entries), (results) =>
          Effect.sync(() => {
            for (const [index, entry] of entries.entries()) {
              const result = results[index]!
              const isSent = entry.facts.at(-1)?.type === "AttemptSucceeded" && result.type === "Appended"
              if (isSent) timeline.after(1_000, () => giveUp(entry, result.version))
            }
          })
        )
    })
  },

  "counts an attempt that was put off": appending((entry) => ({
    ...entry,
    facts: entry.facts.map((fact) =>
      fact.type === "AttemptDeferred" ? { ...fact, type: "AttemptFailed", retryAt: fact.dueAt } : fact
    )
  })),

  "sends again what is in doubt": appending((entry, store) => {
    const { messageId, queue, at } = entry
    const doubt = entry.facts[0]
    if (doubt?.type !== "AttemptUnresolved" || queue?.type !== "Wait") return entry
    const opening = fromRecorded(Context.get(store, Memory).tables.streams.get(messageId)![0]!)
    if (Result.isFailure(opening) || opening.success.type !== "MessageQueued") return entry
    const { retry } = opening.success
    if (doubt.attempt >= attemptsMaxOf(retry)) return entry
    const dueAt = DateTime.add(at, { milliseconds: retryWaitMs(retry, doubt.attempt, 0.5) })
    const failed = { ...doubt, type: "AttemptFailed", status: null, retryAt: dueAt } as const
    return { ...entry, facts: [failed], queue: { ...queue, dueAt, attempt: doubt.attempt } }
  }),

  "revives a dead letter when a receipt says that it was delivered": (store) => {
    const { streams } = Context.get(store, Memory).tables
    const real = Context.get(store, EventStore)
    return Context.add(store, EventStore, {
      ...real,
      append: (entries) =>
        Effect.suspend(() => {
          const revived = (entry: Append) =>
            entry.facts[0]?.type === "ReceiptRecorded" &&
            streams.get(entry.messageId)?.at(-1)?.name.startsWith("MessageDeadLettered") === true
          const delivered = { type: "MessageDelivered", proof: "receipt" } as const
          return Effect.map(
            real.append(
              entries.map((entry) => (revived(entry) ? { ...entry, facts: [...entry.facts, delivered] } : entry))
            ),
            (results) =>
              results.map((result, index) =>
                result.type === "Appended"
                  ? { ...result, version: entries[index]!.expected + entries[index]!.facts.length }
                  : result
              )
          )
        })
    })
  },

  "answers that a stream is parked before that is on the disk": (store, { commits }) => {
    commits.asynchronous.add("park")
    return store
  },

  "never brings back what was parked": restoring(() => () => Effect.succeed(0)),

  "brings back what was parked twice": restoring(
    (restore, store) => (rows) =>
      Effect.tap(restore(rows), () =>
        Effect.sync(() => {
          const memory = Context.get(store, Memory)
          for (const { messageId, place } of rows) {
            if (place.type === "Waiting")
              putWaiting(memory, { ...place, messageId, dueAt: DateTime.add(place.dueAt, { milliseconds: 1 }) })
          }
        })
      )
  ),

  "brings back what was parked without a look at its facts": restoring(
    (restore) => (rows) =>
      restore(
        rows.map((row) =>
          row.place.type === "Waiting" || row.place.type === "UnderWay"
            ? { ...row, place: { ...row.place, type: "Waiting", version: 1, attempt: 0 } }
            : row
        )
      )
  ),

  "brings back only what waits": restoring(
    (restore) => (rows) =>
      restore(rows.map((row) => (row.place.type === "UnderWay" ? { ...row, place: { type: "Out" } } : row)))
  ),

  "un-parks what a batch holds": restoring(
    (restore, store) => (rows) =>
      Effect.tap(restore(rows), () =>
        Effect.sync(() => {
          for (const { messageId } of rows) Context.get(store, Memory).tables.parked.delete(streamOf(messageId))
        })
      )
  ),

  "parks nothing": (store) =>
    Context.add(store, Parked, { ...Context.get(store, Parked), park: () => Effect.succeed([]) }),

  "keeps the body of what was erased": (store) =>
    Context.add(store, Bodies, { ...Context.get(store, Bodies), erase: () => Effect.succeed(true) }),

  "forgets that a body was erased": (store) => {
    const real = Context.get(store, EventStore)
    const unaware = <S extends Stream>(stream: S): S => ({
      ...stream,
      facts: stream.facts.filter(({ fact }) => fact.type !== "MessageBodyErased")
    })
    const kept = Context.add(store, Bodies, { ...Context.get(store, Bodies), erase: () => Effect.succeed(true) })
    return Context.add(kept, EventStore, { ...real, load: (id) => Effect.map(real.load(id), unaware) })
  },

  "replays what is dead by now, not what was dead when it was asked": (store) => {
    const { streams } = Context.get(store, Memory).tables
    const real = Context.get(store, Replays)
    const epochOf = (id: MessageId) =>
      1 + (streams.get(id) ?? []).filter(({ name }) => name.startsWith("MessageReplayed")).length
    return Context.add(store, Replays, {
      ...real,
      items: (id, after, limit) =>
        Effect.map(real.items(id, after, limit), (items) =>
          items.map((item) => ("messageId" in item ? { ...item, epoch: epochOf(item.messageId) } : item))
        )
    })
  },

  "finds for a replay what died after it was asked for": (store) => {
    const { replays } = Context.get(store, Memory).tables
    const real = Context.get(store, Replays)
    return Context.add(store, Replays, {
      ...real,
      search: (job, limit) =>
        Effect.suspend(() => {
          const row = replays.get(job.id)!
          const { requestedAt } = row.job
          row.job = { ...row.job, requestedAt: DateTime.add(requestedAt, { hours: 1 }) }
          return Effect.map(real.search(job, limit), () => {
            row.job = { ...row.job, requestedAt }
            return row.job
          })
        })
    })
  },

  "sets down a replay twice under one key": (store) => {
    const { replays } = Context.get(store, Memory).tables
    const real = Context.get(store, Replays)
    return Context.add(store, Replays, {
      ...real,
      open: (opening) =>
        Effect.suspend(() => {
          for (const [id, row] of replays) replays.set(id, { ...row, idempotency: null })
          return real.open(opening)
        })
    })
  },

  "closes a replay with its first stretch": (store) => {
    const real = Context.get(store, Replays)
    return Context.add(store, Replays, { ...real, back: (id) => real.close(id) })
  },

  "names no replay in what it replays": appending((entry) => ({
    ...entry,
    facts: entry.facts.map((fact) => (fact.type === "MessageReplayed" ? { ...fact, replayId: null } : fact))
  }))
} satisfies Record<string, Sabotage>

/** Those that show in worlds with troubles alone. */
export const repairMutants: ReadonlySet<Sabotage> = new Set(
  Object.entries<Sabotage>(mutants).flatMap(([name, sabotage]) => (/park/.test(name) ? [sabotage] : []))
)
