/** A store with a message in every place there is, a circuit that opened, a replay, and a journal of another kind. */
import { randomUUID } from "node:crypto"
import { expect } from "@effect/vitest"
import { Duration, Effect, Result } from "effect"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import { Events } from "../../../src/application/ports/Events.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Queue } from "../../../src/application/ports/Queue.ts"
import {
  initial as closed,
  decide as decideCircuit,
  replay as foldCircuit
} from "../../../src/domain/circuit/decider.ts"
import { circuitDefaults } from "../../../src/domain/circuit/policy.ts"
import { stateOf } from "../../../src/domain/circuit/state.ts"
import { toRecorded as recordedConfiguration } from "../../../src/domain/destination/facts.ts"
import { EventId, type OrgId, ReplayId } from "../../../src/domain/ids.ts"
import { toRecorded as recordedReplay } from "../../../src/domain/replay/facts.ts"
import {
  delivered,
  inMillis,
  newLane,
  newOrg,
  next,
  now,
  opened,
  type Sample,
  settled,
  started,
  unreachable
} from "../sample.ts"
import { refused, write } from "../written.ts"

const unknown = {
  type: "Unknown",
  error: { code: "timeout", message: "no answer", retryable: true },
  status: null,
  reconcileAfterMs: 60_000,
  durationMs: 3
} as const

const LATER = inMillis(3_600_000)

/** Takes the one message that is due, as a worker does. */
const claim = Effect.gen(function* () {
  const queue = yield* Queue
  const claimed = yield* queue.claim({
    worker: "w",
    limit: 9,
    perLane: 9,
    room: new Map(),
    fullOrgs: new Set<never>(),
    lease: Duration.minutes(5)
  })
  expect(claimed?.messages).toHaveLength(1)
  return claimed!.batch
})

/** One attempt from claim to release. */
const attempt = Effect.fnUntraced(function* (sample: Sample, outcome: Parameters<typeof settled>[1]) {
  const fence = yield* claim
  const begun = started(sample, { fence })
  const { epoch, attempt: number } = begun.after.message.progress
  const response = { epoch, attempt: number, body: "said “no”", headers: { server: "nginx" } }
  const after = yield* write(begun, settled(begun.after, outcome, { fence, response }))
  yield* (yield* Queue).release(fence, [])
  return after
})

export interface Populated {
  readonly orgId: OrgId
  readonly waiting: Sample
  readonly retrying: Sample
  readonly head: Sample
  readonly behind: Sample
  readonly underWay: Sample
  readonly held: Sample
  readonly doubtful: Sample
  readonly delivered: Sample
  readonly dead: Sample
  readonly replayed: Sample
  readonly cancelled: Sample
  readonly erased: Sample
  /** An event with two messages, of which one is erased, and one that nobody wanted. */
  readonly told: EventId
  readonly unwanted: EventId
  readonly circuit: `circuit-${string}`
}

/** Nothing is due afterwards but what is claimed, so it may be done again on the same store. */
export const populated = Effect.gen(function* () {
  const orgId = newOrg()
  const lane = newLane()
  const open = (wishes: Parameters<typeof opened>[0] = {}) =>
    write(opened({ orgId, retry: { strategy: "fixed", baseMs: 3_600_000, attemptsMax: 3, jitter: [1, 1] }, ...wishes }))

  const held = yield* open({ idempotency: { orgId, key: "once", requestHash: "h" } })
  yield* claim
  const claimed = yield* open()
  const fence = yield* claim
  const underWay = yield* write(started(claimed, { fence }))

  const retrying = yield* attempt(yield* open(), unreachable())
  const doubtful = yield* attempt(yield* open(), unknown)
  const fine = yield* attempt(yield* open({ destination: lane, orderingKey: "another" }), delivered)
  const dead = yield* attempt(yield* open({ destination: lane, orderingKey: "a third" }), refused())
  const died = yield* attempt(yield* open(), refused())
  const erasing = yield* attempt(yield* open({ body: "secret" }), delivered)
  const erased = yield* write(next(erasing, { type: "EraseBody", reason: "asked for" }))
  yield* (yield* Bodies).erase(erased.id)
  const cancelled = yield* write(next(yield* open(), { type: "CancelMessage", reason: null }))

  const head = yield* open({ destination: lane, orderingKey: "a key", dueAt: LATER })
  const behind = yield* open({ destination: lane, orderingKey: "a key" })
  const waiting = yield* open({
    metadata: { "ünicode key": "“value”" },
    dossierId: "d",
    body: '{"a":1.10,"b":"\\u0000"}',
    dueAt: LATER
  })
  const replayed = yield* write(
    next(died, { type: "ReplayMessage", now: LATER, reason: "again" }, { opening: { body: "[2]", idempotency: null } })
  )

  const destination = newLane()
  const command = {
    type: "CountFailures",
    failures: 5,
    error: null,
    now: now(),
    policy: circuitDefaults,
    die: 0.5
  } as const
  const facts = Result.getOrThrow(decideCircuit(closed, command))
  yield* (yield* Circuits).append(destination, 0, facts, stateOf(foldCircuit(facts), 1), "operator")

  const journals = yield* Journals
  const id = ReplayId.make(randomUUID())
  const request = {
    type: "ReplayRequested",
    orgId,
    selection: { filter: { errorCode: "http_400" } },
    reason: null,
    matched: 2,
    requestedAt: now()
  } as const
  yield* journals.append(
    `replay-${id}`,
    0,
    [
      recordedReplay(request),
      recordedReplay({ type: "ReplayAdvanced", from: 0, to: 2, replayed: 1, skipped: 1 }),
      recordedReplay({ type: "ReplayCompleted" })
    ],
    now(),
    "key:k"
  )
  yield* journals.append(
    `endpoint-${destination}`,
    0,
    [recordedConfiguration({ type: "DestinationCreated", orgId, channel: "webhook" })],
    now(),
    "operator"
  )
  const told = EventId.make(randomUUID())
  const fact = {
    type: "EventPublished",
    ...{ orgId, eventType: "order.paid", matched: 2, correlationId: "c", dossierId: null, orderingKey: null },
    ...{ metadata: null, deliverAt: null, expiresAt: null }
  } as const
  const tells = () => opened({ orgId, eventId: told, body: { ofEvent: told }, dueAt: LATER, acceptedAt: now() })
  const [shares, shared] = [tells(), tells()]
  const unwanted = EventId.make(randomUUID())
  const published = { at: now(), actor: "key:k", body: '{"data":1.10}' }
  yield* (yield* Events).publish([
    {
      ...{ id: told, fact, ...published, idempotency: { key: "once", requestHash: "h" } },
      messages: [shares.entry, shared.entry]
    },
    { ...{ id: unwanted, fact: { ...fact, matched: 0 }, ...published, idempotency: null }, messages: [] }
  ])
  yield* write(next(shares.after, { type: "EraseBody", reason: "asked for" }))
  yield* (yield* Bodies).erase(shares.after.id)
  return {
    told,
    unwanted,
    orgId,
    waiting,
    retrying,
    head,
    behind,
    underWay,
    held,
    doubtful,
    delivered: fine,
    dead,
    replayed,
    cancelled,
    erased,
    circuit: `circuit-${destination}`
  } satisfies Populated
})
