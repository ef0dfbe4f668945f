/** The queue over plain maps: lanes in the order of their turns, and one lease per claimed batch. */
import { DateTime, type Duration, Effect, Latch, Layer, Result } from "effect"
import {
  type AbandonedMessage,
  type BatchId,
  CLAIMED_BODY_MAX,
  type ClaimRequest,
  type ClaimTerms,
  Queue
} from "../../../src/application/ports/Queue.ts"
import { decide, evolve, replay } from "../../../src/domain/circuit/decider.ts"
import type { CircuitFact } from "../../../src/domain/circuit/facts.ts"
import { fromRecorded as circuitFact } from "../../../src/domain/circuit/facts.ts"
import { PROBE_FRESH_MS } from "../../../src/domain/circuit/policy.ts"
import { stateOf } from "../../../src/domain/circuit/state.ts"
import type { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import type { MessageQueued } from "../../../src/domain/message/facts.ts"
import { fromRecorded } from "../../../src/domain/message/recorded.ts"
import { bodyIn, Memory, type Tables } from "../Memory.ts"
import { allowance, changeLane, claimableAt, countAgainstRate, laneOf, writeCircuit } from "./lanes.ts"
import { announceDueWork, isDue, putWaiting, removeWaiting } from "./waiting.ts"

interface Handout {
  readonly message: AbandonedMessage
  readonly terms: ClaimTerms
}

/** What the lanes hand out now, each giving what it may and then going to the end of the line. */
const takeDue = (
  memory: Memory["Service"],
  { limit, perLane, room, fullOrgs }: ClaimRequest
): ReadonlyArray<Handout> => {
  const { tables } = memory
  const now = memory.now()
  const nowMs = DateTime.toEpochMillis(now)
  const taken: Array<Handout> = []
  for (const [lane, waiting] of [...tables.lanes]) {
    if (taken.length >= limit) break
    if (!room.has(lane) && waiting.length > 0 && fullOrgs.has(openingOf(tables, waiting[0]!).orgId)) continue
    const due = waiting.filter((message) => isDue(message, now))
    const most = Math.max(0, Math.min(room.get(lane) ?? perLane, limit - taken.length))
    const given = due.slice(0, Math.min(most, allowance(laneOf(tables, lane), nowMs, most)))
    if (given.length === 0) continue
    tables.lanes.delete(lane)
    tables.lanes.set(lane, waiting)
    for (const message of given) removeWaiting(tables, message)
    countAgainstRate(tables, lane, nowMs, given.length)
    const terms = termsOf(memory, lane, given[0]!)
    taken.push(...given.map((message) => ({ message, terms })))
  }
  return taken
}

/** A circuit whose silence is over lets `first` through to find out; the permit is written with it. */
const termsOf = (memory: Memory["Service"], lane: DestinationId, first: AbandonedMessage): ClaimTerms => {
  const { state, permitMs, rateLimit } = laneOf(memory.tables, lane)
  const { status, generation, failures, inFlightMax } = state
  const isRateLimited = rateLimit !== null
  if (status === "CLOSED") {
    const circuitMode = failures > 0 || inFlightMax !== null ? "watched" : null
    return { generation, circuitMode, startWithinMs: null, isRateLimited, inFlightMax }
  }
  const circuit = replay(historyOf(memory.tables, lane))
  const command = { type: "StartProbe", probe: first.messageId, now: memory.now(), permitMs } as const
  // The lane may be earlier than the facts: a permit that was given back.
  const opened = { ...circuit, memory: { ...circuit.memory, until: state.blockedUntil } }
  const facts = Result.getOrThrow(decide(opened, command))
  writeCircuit(memory, lane, facts, stateOf(facts.reduce(evolve, circuit), generation + facts.length))
  return {
    ...{ generation: generation + facts.length, circuitMode: "probe" },
    ...{ startWithinMs: PROBE_FRESH_MS, isRateLimited, inFlightMax: 1 }
  }
}

const historyOf = (tables: Tables, lane: DestinationId): ReadonlyArray<CircuitFact> =>
  (tables.journals.get(`circuit-${lane}`) ?? []).map((row) => Result.getOrThrow(circuitFact(row)))

const openingOf = (tables: Tables, { messageId }: AbandonedMessage): MessageQueued => {
  const opening = Result.getOrThrow(fromRecorded(tables.streams.get(messageId)![0]!))
  if (opening.type !== "MessageQueued") throw new Error(`${messageId} does not begin with MessageQueued`)
  return opening
}

/** What its worker needs to start without reading the stream. */
const claimed = (tables: Tables, { message, terms }: Handout) => {
  const body = bodyIn(tables, message.messageId)
  const isBodyLarge = body !== null && Buffer.byteLength(body) > CLAIMED_BODY_MAX
  return { ...message, queued: openingOf(tables, message), body: isBodyLarge ? null : body, isBodyLarge, terms }
}

export const layer = Layer.effect(
  Queue,
  Effect.gen(function* () {
    const memory = yield* Memory
    const { tables, now } = memory
    const nextBatch = () => {
      tables.batchesMade += 1
      return String(tables.batchesMade) as BatchId
    }

    // Opened by new work and shut by whoever it woke, so work that arrives just after an empty claim is not slept over.
    const work = Latch.makeUnsafe()
    const wake = () => work.openUnsafe()
    memory.onDueWork.add(wake)
    yield* Effect.addFinalizer(() => Effect.sync(() => memory.onDueWork.delete(wake)))

    const claim = (request: ClaimRequest) =>
      Effect.sync(() => {
        const handouts = takeDue(memory, request)
        if (handouts.length === 0) return null
        const batch = nextBatch()
        tables.claims.set(batch, {
          worker: request.worker,
          until: DateTime.addDuration(now(), request.lease),
          messages: handouts.map(({ message }) => message)
        })
        return { batch, messages: handouts.map((handout) => claimed(tables, handout)) }
      })

    const claimOne = (
      worker: string,
      { messageId, lane, dueAt }: Pick<AbandonedMessage, "messageId" | "lane" | "dueAt">,
      lease: Duration.Duration
    ) =>
      Effect.sync(() => {
        const message = tables.lanes
          .get(lane)
          ?.find((waiting) => waiting.messageId === messageId && DateTime.Equivalence(waiting.dueAt, dueAt))
        if (message === undefined) return null
        removeWaiting(tables, message)
        const batch = nextBatch()
        tables.claims.set(batch, { worker, until: DateTime.addDuration(now(), lease), messages: [message] })
        return batch
      })

    const putBack = (batch: BatchId, ids: ReadonlyArray<MessageId>) =>
      Effect.sync(() => {
        const claim = tables.claims.get(batch)
        if (claim === undefined) return
        const isBack = ({ messageId }: AbandonedMessage) => ids.includes(messageId)
        tables.claims.set(batch, { ...claim, messages: claim.messages.filter((message) => !isBack(message)) })
        for (const message of claim.messages.filter(isBack)) putWaiting(memory, message)
        announceDueWork(memory)
      })

    const release = (batch: BatchId, notStarted: ReadonlyArray<AbandonedMessage>) =>
      Effect.sync(() => {
        const held = new Set(tables.claims.get(batch)?.messages.map(({ messageId }) => messageId))
        if (!tables.claims.delete(batch)) return
        for (const { messageId, lane, dueAt, version, epoch, attempt } of notStarted) {
          if (!held.has(messageId)) continue
          putWaiting(memory, { messageId, lane, dueAt, version, epoch, attempt })
        }
        announceDueWork(memory)
      })

    const renew = (batches: ReadonlyArray<BatchId>, lease: Duration.Duration) =>
      Effect.sync(() => {
        const until = DateTime.addDuration(now(), lease)
        const held = batches.filter((batch) => tables.claims.has(batch))
        for (const batch of held) tables.claims.set(batch, { ...tables.claims.get(batch)!, until })
        return new Set(held)
      })

    const takeOver = (worker: string, lease: Duration.Duration, batchesMax: number) =>
      Effect.sync(() =>
        [...tables.claims]
          .filter(([_, claim]) => DateTime.isLessThanOrEqualTo(claim.until, now()))
          .slice(0, batchesMax)
          .map(([lost, { messages }]) => {
            const batch = nextBatch()
            tables.claims.delete(lost)
            tables.claims.set(batch, { worker, until: DateTime.addDuration(now(), lease), messages })
            return { batch, messages }
          })
      )

    const rename = (batches: ReadonlyArray<BatchId>, lease: Duration.Duration) =>
      Effect.sync(() =>
        batches.flatMap((old) => {
          const claim = tables.claims.get(old)
          if (claim === undefined) return []
          const batch = nextBatch()
          tables.claims.delete(old)
          tables.claims.set(batch, { ...claim, until: DateTime.addDuration(now(), lease) })
          return [{ batch, messages: claim.messages }]
        })
      )

    const deferLane = (lane: DestinationId, wait: Duration.Duration) =>
      Effect.sync(() => {
        const until = DateTime.toEpochMillis(DateTime.addDuration(now(), wait))
        changeLane(tables, lane, { nextAt: Math.max(laneOf(tables, lane).nextAt ?? until, until) })
      })

    const nextDueAt = Effect.sync(() => {
      const times = [...tables.lanes].flatMap(([lane, waiting]) => {
        const opensAt = claimableAt(laneOf(tables, lane))
        return opensAt === null ? [] : [Math.max(DateTime.toEpochMillis(waiting[0]!.dueAt), opensAt)]
      })
      return times.length === 0 ? null : DateTime.makeUnsafe(Math.min(...times))
    })

    const awaitWork = (atMost: Duration.Duration) =>
      work.await.pipe(Effect.timeoutOption(atMost), Effect.andThen(Effect.sync(() => void work.closeUnsafe())))

    return Queue.of({
      ...{ claim, claimOne, putBack, release, renew, takeOver, rename },
      ...{ deferLane, nextDueAt, awaitWork }
    })
  })
)
