/**
 * The store as a process far away from it sees it: every call is a decision point. The request travels, the
 * store does its work in one step, the answer travels back, and each part of that may fail, take long or be
 * the last thing its process did. Once sent, a request runs even when its caller was interrupted or killed.
 */
import { Context, Duration, Effect, Exit, type Layer } from "effect"
import { Archive } from "../../src/application/ports/Archive.ts"
import { Bodies } from "../../src/application/ports/Bodies.ts"
import { Channels } from "../../src/application/ports/Channels.ts"
import { Circuits } from "../../src/application/ports/Circuits.ts"
import { DerivedRows } from "../../src/application/ports/DerivedRows.ts"
import { Destinations } from "../../src/application/ports/Destinations.ts"
import { type Append, EventStore, type LoggedFact } from "../../src/application/ports/EventStore.ts"
import { StoreUnavailable } from "../../src/application/ports/errors.ts"
import { Journals } from "../../src/application/ports/Journals.ts"
import { MessageViews } from "../../src/application/ports/MessageViews.ts"
import { Parked } from "../../src/application/ports/Parked.ts"
import { Projections } from "../../src/application/ports/Projections.ts"
import { ProviderMessages } from "../../src/application/ports/ProviderMessages.ts"
import { type BatchId, type Claim, Queue } from "../../src/application/ports/Queue.ts"
import { Replays } from "../../src/application/ports/Replays.ts"
import type { MessageId } from "../../src/domain/ids.ts"
import { UnreadableFact } from "../../src/domain/recorded.ts"
import { Memory } from "../model/Memory.ts"
import type * as MemoryPorts from "../model/MemoryPorts.ts"
import type { Process } from "./process.ts"
import { rareCalls, results, type StoreCall } from "./swarm.ts"
import type { World } from "./world.ts"

/** All ports of the store. A port without decision points below is simply always there. */
export type StorePorts = Layer.Success<typeof MemoryPorts.layerShared>

type ReceiptResult = "ok" | (typeof results)[number]

/** Fewer than an honest store would give, so that a replay of a few messages has several stretches. */
const STRETCH_MAX = 1

/** A deadline of the adapter. */
export const ANSWERS_WITHIN_MS = 8_000

const unavailable = Exit.fail(new StoreUnavailable({ cause: new Error("simulated") }))

const drawFate = ({ dice, swarm, healed }: World, call: StoreCall): ReceiptResult => {
  const { store } = swarm
  const emphasis = swarm.emphasis.get(call) ?? 1
  if (healed) return "ok"
  let die = dice.next()
  for (const result of results) {
    const rate = rareCalls.has(call) ? swarm.rareFaults : store[result] * emphasis
    if (die < rate) return result
    die -= rate
  }
  return "ok"
}

/** What an append was asked to do, for whoever reads the trace. */
const described = (world: World, entries: ReadonlyArray<Append>) =>
  entries
    .map(({ messageId, facts }) => `${world.nameOf(messageId)} ${facts.map(({ type }) => type).join("+")}`)
    .join(", ")

/** `readsAll`: for a part of the process that is of a release which can read every fact. */
export const faultyPorts = (world: World, process: Process, readsAll = true): Context.Context<StorePorts> => {
  const { dice, timeline, swarm } = world
  const latency = () => 0.05 + dice.next() * 1.5

  const call = <A>(
    name: StoreCall,
    work: Effect.Effect<A, StoreUnavailable>,
    detail = "",
    summary: (answer: A) => string = () => "ok",
    released: ReadonlyArray<BatchId> = []
  ): Effect.Effect<A, StoreUnavailable> =>
    Effect.callback<A, StoreUnavailable>((resume) => {
      if (world.silentUntil > timeline.now) return unheard(name, work, resume, released)
      const drawn = drawFate(world, name)
      world.decided(process, name, drawn)
      let there = latency()
      let result = drawn
      if (drawn === "slow") {
        there = Math.min(dice.next() * 3 * swarm.leaseMs, swarm.healAtMs - timeline.now)
        world.disturbed(process, there)
        result = dice.pick(["ok", "failBefore", "failAfter"])
      }
      if (drawn === "freeze") world.freeze(process)
      // A stop that comes while the store is being asked, not in some quiet moment.
      if (!world.healed && dice.chance(swarm.stopWhileAsking))
        timeline.after(dice.next() * 2, () => world.stop(process))
      if (drawn === "crashBefore") return world.crash(process, `before ${name} ${detail}`)
      const answer = (exit: Exit.Exit<A, StoreUnavailable>) => {
        timeline.after(latency(), () => process.schedule(() => resume(exit)))
      }
      timeline.after(there, () => {
        if (result === "failBefore") {
          world.trace(process, `${name} ${detail} ✗ not done`)
          return answer(unavailable)
        }
        const exit = world.commit(name, () => Effect.runSyncExit(work))
        const outcome = Exit.isSuccess(exit) ? summary(exit.value) : "failed"
        world.trace(process, `${name} ${detail} → ${outcome}${result === "failAfter" ? " ✗ answer lost" : ""}`)
        world.oracle.afterStoreCall(released)
        if (result === "crashAfter") return world.crash(process, `after ${name} ${detail}`)
        answer(result === "failAfter" ? unavailable : exit)
      })
    })

  /** Of a store that answers nobody: what was asked may be done, and its caller gives up. */
  const unheard = <A>(
    name: StoreCall,
    work: Effect.Effect<A, StoreUnavailable>,
    resume: (answer: Exit.Exit<A, StoreUnavailable>) => void,
    released: ReadonlyArray<BatchId>
  ): void => {
    world.disturbed(process, world.silentUntil - timeline.now + ANSWERS_WITHIN_MS)
    if (world.troubleDice.chance(0.3)) {
      world.commit(name, () => Effect.runSyncExit(work))
      world.trace(process, `${name} is done by a store that does not answer`)
      world.oracle.afterStoreCall(released)
    }
    timeline.after(ANSWERS_WITHIN_MS, () => process.schedule(() => resume(unavailable)))
  }

  /** A port whose calls are all of one kind. */
  const everyCall = <Port extends object>(name: StoreCall, port: Port): Port =>
    Object.fromEntries(
      Object.entries(port).map(
        ([method, ask]: [string, (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, StoreUnavailable>]) => [
          method,
          (...args: ReadonlyArray<unknown>) => call(name, ask(...args), method)
        ]
      )
    ) as Port

  const store = Context.get(world.store, EventStore)
  const queue = Context.get(world.store, Queue)
  const circuits = Context.get(world.store, Circuits)
  const views = Context.get(world.store, MessageViews)
  const projections = Context.get(world.store, Projections)
  const replays = Context.get(world.store, Replays)
  const archive = Context.get(world.store, Archive)

  /** What the oracle must know of a call, in the same step. */
  const told = <A>(work: Effect.Effect<A, StoreUnavailable>, tell: (answer: A) => void) =>
    Effect.tap(work, (answer) => Effect.sync(() => tell(answer)))

  const isIllegible = (id: MessageId) => !readsAll && world.unreadable.has(id)
  const legible = <A>(ids: ReadonlyArray<MessageId>, work: Effect.Effect<A, StoreUnavailable>) =>
    Effect.suspend(() =>
      ids.some(isIllegible)
        ? Effect.die(new UnreadableFact({ name: "Unheard@1", message: "no release wrote it" }))
        : work
    )
  const seen = (facts: ReadonlyArray<LoggedFact>): ReadonlyArray<LoggedFact> =>
    facts.some(({ messageId }) => messageId !== null && isIllegible(messageId))
      ? facts.map((fact) =>
          fact.messageId !== null && isIllegible(fact.messageId) ? { ...fact, name: "Unheard@1" } : fact
        )
      : facts
  const split = (claim: Claim | null): Claim | null => {
    if (claim === null || !claim.messages.some(({ messageId }) => isIllegible(messageId))) return claim
    return {
      ...claim,
      messages: claim.messages.filter(({ messageId }) => !isIllegible(messageId)),
      unreadable: claim.messages
        .filter(({ messageId }) => isIllegible(messageId))
        .map(({ messageId, lane, terms }) => ({
          ...{ messageId, lane, terms },
          defect: new UnreadableFact({ name: "Unheard@1", message: "no release wrote it" })
        }))
    }
  }

  return world.store.pipe(
    Context.add(Parked, everyCall("park", Context.get(world.store, Parked))),
    Context.add(DerivedRows, everyCall("repair", Context.get(world.store, DerivedRows))),
    Context.add(Archive, {
      ...archive,
      streams: (names) =>
        call(
          "archive",
          Effect.map(archive.streams(names), (streams) => {
            // Facts of kinds that are known are among those that can't be read.
            const all = [...streams].map(
              ([name, facts]) => [name, [...seen(facts.slice(0, 1)), ...facts.slice(1)]] as const
            )
            return new Map(all)
          })
        )
    }),
    Context.add(EventStore, {
      ...store,
      load: (id) => call("load", store.load(id), world.nameOf(id)),
      loadMany: (ids) => call("loadMany", legible(ids, store.loadMany(ids))),
      append: (entries) =>
        call(
          "append",
          Effect.tap(
            Effect.suspend(() => {
              world.oracle.beforeAppend(process, entries)
              return store.append(entries)
            }),
            (results) => Effect.sync(() => world.oracle.afterAppend(process, entries, results))
          ),
          described(world, entries),
          (results) => results.map(({ type }) => type).join(", ")
        ),
      acceptedUnder: (orgId, key) => call("load", store.acceptedUnder(orgId, key)),
      readAll: (after, limit) => call("readAll", Effect.map(store.readAll(after, limit), seen)),
      unreadSince: store.unreadSince
    }),
    Context.add(Queue, {
      ...queue,
      claim: (request) =>
        call(
          "claim",
          Effect.map(
            told(queue.claim(request), (claim) => world.oracle.handedOut(claim)),
            split
          ),
          "",
          (claim) =>
            claim === null
              ? "nothing"
              : `batch ${claim.batch}: ${claim.messages.map(({ messageId }) => world.nameOf(messageId)).join(" ")}`
        ),
      claimOne: (worker, message, lease) =>
        call("claimOne", queue.claimOne(worker, message, lease), world.nameOf(message.messageId), String),
      putBack: (batch, messages) =>
        call(
          "putBack",
          queue.putBack(batch, messages),
          `batch ${batch}: ${messages.map((id) => world.nameOf(id)).join(" ")}`
        ),
      release: (batch, notStarted) =>
        call(
          "release",
          queue.release(batch, notStarted),
          `batch ${batch}, back: ${notStarted.map(({ messageId }) => world.nameOf(messageId)).join(" ")}`,
          () => "ok",
          [batch]
        ),
      renew: (batches, lease) =>
        call("renew", queue.renew(batches, lease), batches.join(" "), (held) => `held: ${[...held].join(" ")}`),
      takeOver: (worker, lease, batchesMax) =>
        call("takeOver", queue.takeOver(worker, lease, batchesMax), "", (batches) => {
          if (batches.length > 0) world.tally("a batch was taken over")
          return batches.map(({ batch }) => `batch ${batch}`).join(" ") || "nothing"
        }),
      rename: (batches, lease) =>
        call(
          "takeOver",
          queue.rename(batches, lease),
          `rename ${batches.join(" ")}`,
          (renamed) => renamed.map(({ batch }) => `batch ${batch}`).join(" "),
          batches
        ),
      deferLane: (lane, wait) =>
        call(
          "deferLane",
          told(queue.deferLane(lane, wait), () => world.oracle.deferred(lane, wait))
        ),
      nextDueAt: call("nextDueAt", queue.nextDueAt),
      awaitWork: hearing(world, process)
    }),
    Context.add(Circuits, {
      ...circuits,
      present: (destination) => call("circuit", circuits.present(destination)),
      states: (destinations) => call("circuit", circuits.states(destinations)),
      report: (reports) => call("report", circuits.report(reports)),
      orgOf: (destination) => call("circuit", circuits.orgOf(destination)),
      append: (destination, generation, facts, after, actor) =>
        call(
          "circuitAppend",
          circuits.append(destination, generation, facts, after, actor),
          facts.map(({ type }) => type).join("+"),
          String
        )
    }),
    Context.add(Bodies, everyCall("body", Context.get(world.store, Bodies))),
    Context.add(Channels, Context.get(world.store, Channels)),
    Context.add(Destinations, everyCall("destination", Context.get(world.store, Destinations))),
    Context.add(ProviderMessages, everyCall("provider", Context.get(world.store, ProviderMessages))),
    Context.add(Journals, everyCall("journal", Context.get(world.store, Journals))),
    Context.add(Replays, {
      ...everyCall("replays", replays),
      search: (job, limit) =>
        call(
          "replays",
          told(replays.search(job, Math.min(limit, STRETCH_MAX)), () => world.oracle.isAtWork(job.id)),
          "search"
        ),
      items: (id, after, limit) =>
        call(
          "replays",
          told(replays.items(id, after, Math.min(limit, STRETCH_MAX)), () => world.oracle.isAtWork(id)),
          "items"
        )
    }),
    Context.add(Projections, {
      ...projections,
      runs: call("position", projections.runs),
      build: (name, version, total) => call("position", projections.build(name, version, total), "build"),
      swap: (name, generation) => call("position", projections.swap(name, generation), `swap ${generation}`, String)
    }),
    Context.add(MessageViews, {
      ...everyCall("views", views),
      project: (step, rows) => call("project", views.project(step, rows), `${step.from} to ${step.to}`, String)
    })
  )
}

/** Waiting for work from a process of its own: the news travels, and now and then it gets lost. */
const hearing = (world: World, process: Process) => {
  const { onDueWork } = Context.get(world.store, Memory)
  let heard = false
  let wake: (() => void) | null = null
  const listen = () => {
    if (!process.alive) return void onDueWork.delete(listen)
    if (!world.healed && world.dice.chance(world.swarm.lostWakeUps)) return world.decided(process, "wake-up", "lost")
    world.timeline.after(world.dice.next() * 2, () =>
      process.schedule(() => {
        heard = true
        wake?.()
      })
    )
  }
  onDueWork.add(listen)
  return (atMost: Duration.Duration) =>
    Effect.callback<void>((resume) => {
      const done = () => {
        cancel()
        heard = false
        wake = null
        resume(Effect.void)
      }
      const cancel = world.timeline.after(Duration.toMillis(atMost), () => process.schedule(done))
      if (heard) return done()
      wake = done
      return Effect.sync(() => {
        cancel()
        if (wake === done) wake = null
      })
    })
}
