/**
 * One seed, one history. A world holds the real application in several simulated processes over one memory
 * store, clients that ask and receivers that answer. Until it heals, calls fail, answers get lost, processes
 * are killed, frozen and stopped, clocks jump, and the database crashes. Then everything works and every message
 * must come to its end within a bound, every worker must stop without leaving a lease, and the books must balance.
 *
 * Nothing in it waits for anything real: a run is one synchronous call.
 */

import { Clock, Context, Duration, Effect, Exit, Layer } from "effect"
import { dispatch } from "../../src/application/deliver/dispatch.ts"
import { Senders } from "../../src/application/deliver/Senders.ts"
import { settingsOf } from "../../src/application/destinations/destinations.ts"
import { LogReader } from "../../src/application/log/LogReader.ts"
import { FactsAtOnce, keepProjections } from "../../src/application/log/projections/keepProjections.ts"
import { endMessages } from "../../src/application/maintenance/endMessages.ts"
import { Fingerprint } from "../../src/application/ports/Fingerprint.ts"
import { Projections } from "../../src/application/ports/Projections.ts"
import { Leadership, maintain } from "../../src/application/processes/leader.ts"
import { replayDeadLetters } from "../../src/application/replays/replayDeadLetters.ts"
import { retryParked } from "../../src/application/truth/repair.ts"
import { DestinationId, type MessageId, OrgId } from "../../src/domain/ids.ts"
import { http, webhook, whatsapp } from "../contracts/destinations/samples.ts"
import { copySettingsToLane } from "../model/deliver/lanes.ts"
import { fingerprints } from "../model/Fingerprints.ts"
import * as Memory from "../model/Memory.ts"
import * as MemoryPorts from "../model/MemoryPorts.ts"
import type { ApiServices } from "./asking.ts"
import { startClients } from "./clients.ts"
import { storeClock, Timeline } from "./clock.ts"
import { Commits } from "./commits.ts"
import { type Dice, makeDice } from "./dice.ts"
import { ANSWERS_WITHIN_MS, faultyPorts, type StorePorts } from "./faults.ts"
import { Oracle } from "./judge/oracle.ts"
import { PERMIT_SPARE_MS, waitAfter, webhookWaitsMs } from "./judge/rules.ts"
import { Operators } from "./operators.ts"
import { type Machinery, Process } from "./process.ts"
import { channelOf } from "./receivers.ts"
import { RunQueue } from "./scheduler.ts"
import {
  calm,
  draw,
  drawTroubles,
  drawUnreadable,
  hesitant,
  type LaneDraw,
  rareCalls,
  type StoreCall,
  type Swarm,
  stubborn,
  type Trouble
} from "./swarm.ts"

export interface LaneOfWorld extends LaneDraw {
  readonly id: DestinationId
  readonly orgId: OrgId
}

export interface Report {
  readonly seed: number
  readonly violation: { readonly law: string; readonly detail: string } | null
  /** Equal for equal histories. */
  readonly hash: number
  readonly simulatedMs: number
  readonly decisions: number
  /** How often each thing happened. */
  readonly tallies: ReadonlyMap<string, number>
  readonly trace: ReadonlyArray<string>
}

export type Store = Context.Context<StorePorts | Memory.Memory>

export interface Tools {
  readonly dice: Dice
  readonly timeline: Timeline
  readonly commits: Commits
}

/** Breaks the store on purpose, to see whether the oracle notices. */
export type Sabotage = (store: Store, tools: Tools) => Store

interface Worker {
  readonly process: Process
  /** Asks it to stop and answers when it has. */
  readonly stop: (stopped: () => void) => void
}

const STEPS_MAX = 2_000_000
/** Once everything can be read. */
const REPAIRED_WITHIN_MS = 30_000
const REPAIRED_EVERY_MS = 5_000
/** For so long nothing is wrong any more but that some streams can't be read. */
const STILL_UNREADABLE_MS = 15_000
const PROJECTED_WITHIN_MS = 3_000
/** How likely the database crashes right after one of the calls that are rare, in a world where it does. */
const RARE_CALL_CRASHES = 0.5

/** In one world of sixteen destinations hardly do anything but put off, for so long. */
const STUBBORN_FOR_MS = 40_000
/** In another one somebody has what is parked tried again so often, while messages are on their way. */
const TRIED_AGAIN_EVERY_MS = 250

export class World {
  readonly seed: number
  readonly dice: Dice
  readonly timeline = new Timeline()
  readonly swarm: Swarm
  readonly machinery: Machinery
  readonly store: Store
  readonly commits: Commits
  readonly oracle: Oracle
  readonly lanes: ReadonlyArray<LaneOfWorld>
  healed = false
  /** What befalls this world's store; none in most. */
  readonly troubles: ReadonlyArray<Trouble>
  readonly troubleDice: Dice
  /** Messages whose facts the workers' release can't read until everything heals. */
  readonly unreadable = new Set<MessageId>()
  /** Also those that a later release reads again. */
  readonly wasUnreadable = new Set<MessageId>()
  /** Until then the store answers nobody. */
  silentUntil = 0

  #beingRebuilt = 0
  #listsAreRepaired = false
  readonly #operators: Operators
  readonly #runQueue: RunQueue
  readonly #tallies = new Map<string, number>()
  readonly #trace: Array<string> = []
  readonly #names = new Map<string, string>()
  readonly #apis = new Map<number, { readonly process: Process; readonly services: Context.Context<ApiServices> }>()
  readonly #workers = new Map<number, Worker>()
  /** How each living process is started again. */
  readonly #restarts = new Map<Process, () => void>()
  readonly #isTriedAgain: boolean
  #generation = 0
  #hash = 0x811c9dc5
  #decisions = 0
  /** Clients and operators that still ask. */
  #asking = 2
  #released = false
  #stopping = false
  #ended = false
  #violation: Report["violation"] = null

  constructor(seed: number, sabotage: Sabotage = (store) => store) {
    this.seed = seed
    this.dice = makeDice(seed)
    this.#isTriedAgain = seed % 16 === 11
    const drawn = draw(this.dice)
    // Half of these worlds have the ordinary faults too.
    const isCalm = seed % 32 === 11
    const swarm = this.#isTriedAgain ? hesitant(isCalm ? calm(drawn) : drawn) : drawn
    this.troubleDice = makeDice(seed + 1_000_003)
    const drawTrouble = this.#isTriedAgain ? drawUnreadable : drawTroubles
    this.troubles = drawTrouble(this.troubleDice, swarm.healAtMs)
    const silences = this.troubles.flatMap(({ kind, atMs, forMs }) =>
      kind === "silence" ? [atMs + forMs + ANSWERS_WITHIN_MS] : []
    )
    const isStubborn = seed % 16 === 3
    const healAtMs = Math.max(swarm.healAtMs, ...silences, isStubborn ? STUBBORN_FOR_MS : 0)
    this.swarm = { ...swarm, healAtMs }
    this.#runQueue = new RunQueue(this.dice)
    this.machinery = {
      timeline: this.timeline,
      runQueue: this.#runQueue,
      dice: this.dice,
      opsMax: this.swarm.opsMax,
      onError: (process, message) => this.#logged(process, message)
    }
    const store = openStore(this.timeline)
    this.commits = new Commits(Context.get(store, Memory.Memory).tables)
    this.store = sabotage(store, this)
    this.lanes = this.swarm.lanes.map((lane, index) => ({
      ...(isStubborn ? stubborn(lane) : lane),
      id: DestinationId.make(`00000000-0000-4000-8000-0000000001${String(index).padStart(2, "0")}`),
      orgId: OrgId.make(`org-${index % 2}`)
    }))
    this.#addDestinations()
    this.oracle = new Oracle(this)
    this.#operators = new Operators(this)
  }

  // ----------------------------------------------------------------------------------- what others ask

  readonly laneOf = (id: DestinationId): LaneOfWorld => this.lanes.find((lane) => lane.id === id)!

  /** Short names in the order of appearance; ids say nothing to a reader. */
  nameOf(id: MessageId): string {
    const name = this.#names.get(id) ?? `m${this.#names.size + 1}`
    this.#names.set(id, name)
    return name
  }

  someApi() {
    const apis = [...this.#apis.values()]
    return apis.length === 0 ? null : this.dice.pick(apis)
  }

  tally(what: string): void {
    this.#tallies.set(what, (this.#tallies.get(what) ?? 0) + 1)
  }

  trace(process: Process | null, what: string): void {
    const line = `${(this.timeline.now / 1000).toFixed(4)}s ${process?.name ?? "-"} ${what}`
    this.#trace.push(line)
    for (let i = 0; i < line.length; i++) this.#hash = Math.imul(this.#hash ^ line.charCodeAt(i), 0x01000193)
  }

  /** A decision point was passed and something was chosen. */
  decided(process: Process, call: string, result: string): void {
    this.#decisions += 1
    this.tally(`fault ${call}: ${result}`)
    // How receivers behave is no excuse for a process; what happens to itself or to its calls is.
    if (result !== "ok" && call !== "send") this.disturbed(process, 0)
  }

  /** What goes wrong now is felt for so long, and until leases that were lost by it have run out. */
  disturbed(process: Process, millis: number): void {
    process.disturbedUntil = Math.max(process.disturbedUntil, this.timeline.now + millis + 2 * this.swarm.leaseMs)
  }

  /** The first broken law ends the world. */
  violate(law: string, detail: string): void {
    this.#violation ??= { law, detail }
    this.trace(null, `VIOLATED ${law}: ${detail}`)
  }

  /** One call at the store. Where its commit is not on the disk yet, the database may crash before it is. */
  commit<A>(call: StoreCall, work: () => A): A {
    const { databaseCrashes } = this.swarm
    if (databaseCrashes === 0) return work()
    const before = this.commits.pending
    const answer = this.commits.run(call, work)
    const likely = rareCalls.has(call) ? RARE_CALL_CRASHES : databaseCrashes
    if (!this.healed && this.commits.pending > before && this.dice.chance(likely)) {
      this.timeline.after(this.dice.next(), () => this.#crashDatabase())
    }
    return answer
  }

  #crashDatabase(): void {
    const lost = this.commits.crash(this.dice)
    if (lost === 0) return
    this.trace(null, `the database crashes and loses ${lost} commits`)
    this.tally("a crash of the database took commits back")
    for (const process of this.#restarts.keys()) this.disturbed(process, 0)
    this.oracle.tookBack()
  }

  /** SIGKILL. Somebody starts the process again after a while. */
  crash(process: Process, when: string): void {
    if (!process.alive) return
    this.trace(process, `killed ${when}`)
    this.tally("a process was killed")
    process.kill()
    const restart = this.#restarts.get(process)
    this.#restarts.delete(process)
    if (restart !== undefined) this.timeline.after(this.dice.between(5, 3_000), restart)
  }

  /** As long as a bad garbage collection, or longer than any lease. */
  freeze(process: Process): void {
    const millis = this.dice.next() * 3 * this.swarm.leaseMs
    this.disturbed(process, millis)
    this.trace(process, `frozen for ${millis.toFixed(1)} ms`)
    process.freeze(millis)
  }

  /** SIGTERM to a worker, as at every deploy: it ends when it is ready and another one takes its place. */
  stop(process: Process): void {
    const found = [...this.#workers].find(([_, worker]) => worker.process === process)
    if (found === undefined) return
    const [n, worker] = found
    this.#workers.delete(n)
    process.schedule(() =>
      worker.stop(() => {
        process.kill()
        this.#restarts.delete(process)
        this.timeline.after(this.dice.between(5, 1_000), () => this.#startWorker(n))
      })
    )
  }

  // --------------------------------------------------------------------------------------------- running

  run(): Report {
    const { swarm } = this
    for (let n = 0; n < swarm.apis; n++) this.#startApi(n)
    for (let n = 0; n < swarm.workers; n++) this.#startWorker(n)
    const done = () => {
      this.#asking -= 1
    }
    startClients(this, done)
    this.#operators.start(done)
    if (swarm.disturbances.length > 0) this.#disturbLater(swarm.disturbanceMs)
    this.timeline.after(swarm.healAtMs, () => this.#heal())
    for (const trouble of this.troubles) this.timeline.after(trouble.atMs, () => this.#befall(trouble))
    if (this.#isTriedAgain) this.#tryAgainLater()
    if (this.seed % 2 === 0) this.timeline.after(swarm.healAtMs / 2, () => this.#rebuild())

    let steps = 0
    while (this.#violation === null && !this.#ended) {
      if (!this.#runQueue.runOne() && !this.timeline.advance()) break
      if (++steps > STEPS_MAX) this.violate("I4 everything comes to an end", "the world runs in circles")
    }
    if (!this.#ended && this.#violation === null)
      this.violate("I4 everything comes to an end", "nothing is left to run")
    return {
      seed: this.seed,
      violation: this.#violation,
      hash: this.#hash >>> 0,
      simulatedMs: this.timeline.now,
      decisions: this.#decisions,
      tallies: this.#tallies,
      trace: this.#trace
    }
  }

  #addDestinations(): void {
    const memory = Context.get(this.store, Memory.Memory)
    const { tables, now } = memory
    const at = now()
    for (const { id, orgId, channel, retry, capacity, dedupes, askable, doubtMs, ...lane } of this.lanes) {
      const { rateLimit, onDeadLetter } = lane
      const url = "https://receiver.example/"
      const own = {
        webhook: { url },
        http: { url, idempotency: dedupes ? "header" : "none", reconcile: askable ? { url } : null },
        whatsapp: { phoneNumberId: id, reconcile: { waitMs: doubtMs, otherwise: askable ? "resend" : "deadLetter" } }
      }[channel]
      const common = { retry, rateLimit, onDeadLetter, maxInFlight: capacity, timeoutMs: this.swarm.deadlineMs }
      const settings = settingsOf({ webhook, http, whatsapp }[channel], { ...common, ...own })
      const destination = {
        ...{ id, orgId, channel, settings, secretNames: [], published: {}, alerting: null },
        ...{ paused: false, disabledReason: null, enabledAt: null, version: 1, createdAt: at, updatedAt: at }
      }
      tables.destinations.set(id, {
        destination,
        secrets: {},
        previousSecrets: [],
        publicKey: null,
        lookup: null,
        removed: false
      })
      copySettingsToLane(memory, destination)
    }
  }

  #newProcess(role: string, restart: () => void): Process {
    const process = new Process(`${role}.${++this.#generation}`, this.machinery)
    const { skewMs } = this.swarm
    process.wallOffset = skewMs === 0 ? 0 : this.dice.between(-skewMs, skewMs)
    this.#restarts.set(process, restart)
    return process
  }

  #startApi(n: number): void {
    const process = this.#newProcess(`api-${n}`, () => this.#startApi(n))
    const services = Context.add(faultyPorts(this, process), Fingerprint, fingerprints)
    this.#apis.set(n, { process, services })
  }

  #startWorker(n: number): void {
    if (this.#stopping) return
    const { swarm } = this
    const process = this.#newProcess(`worker-${n}`, () => this.#startWorker(n))
    const ports = Context.add(faultyPorts(this, process, false), Fingerprint, fingerprints)
    const services = Context.add(ports, Senders, channelsOf(this, process))
    const worker = dispatch({
      worker: process.name,
      concurrency: swarm.concurrency,
      lease: Duration.millis(swarm.leaseMs),
      grace: Duration.millis(swarm.graceMs),
      circuit: swarm.circuit
    })
    let stopping = false
    process.schedule(() => {
      this.trace(process, `starts, its clock ${process.wallOffset} ms ahead`)
      if (n < swarm.keepers) {
        const projecting = Effect.provideService(keepProjections, FactsAtOnce, swarm.factsAtOnce)
        process.start(Effect.provide(projecting, LogReader.layer), services)
        process.start(Effect.provide(maintain(endMessages), Leadership.always), services)
        if (swarm.operations.includes("replay")) process.start(replayDeadLetters, services)
      }
      const fiber = process.start(Effect.scoped(Effect.andThen(worker, Effect.never)), services)
      fiber.addObserver((exit) => {
        if (!stopping) this.violate("a worker runs until it is stopped", `${process.name} ended: ${exit}`)
      })
      this.#workers.set(n, {
        process,
        stop: (stopped) => {
          stopping = true
          process.stopping = true
          const undisturbed = process.disturbedUntil < this.timeline.now
          const before = process.disturbedUntil
          this.trace(process, "is asked to stop")
          fiber.addObserver((exit) => {
            const died = Exit.isFailure(exit) && exit.cause.reasons.some((reason) => reason._tag === "Die")
            if (died) this.violate("a graceful stop succeeds", `${process.name}: ${exit}`)
            this.trace(process, "has stopped")
            // What was still on its way to the store has arrived by then.
            this.timeline.after(5, () => {
              this.oracle.hands.stopped(process, undisturbed && process.disturbedUntil === before)
              stopped()
            })
          })
          fiber.interruptUnsafe()
        }
      })
    })
  }

  /** A bug that a worker survives is still a bug. */
  #logged(process: Process, message: string): void {
    this.trace(process, `logs ${message}`)
    const known = "a batch could not be handed back"
    const isExpected = this.troubles.length > 0 && / is (left out|parked):/.test(message)
    if (message.startsWith(known)) this.tally(known)
    else if (isExpected) this.tally("a stream was parked")
    else this.violate("nothing is logged as an error", `${process.name}: ${message}`)
  }

  #disturbLater(mean: number): void {
    this.timeline.after(-Math.log(1 - this.dice.next()) * mean, () => {
      if (this.healed) return
      this.#disturb()
      this.#disturbLater(mean)
    })
  }

  #disturb(): void {
    const { dice, swarm } = this
    const workers = [...this.#workers.entries()].filter(([_, { process }]) => process.alive)
    const processes = [
      ...workers.map(([_, { process }]) => process),
      ...[...this.#apis.values()].map((api) => api.process)
    ]
    const process = dice.pick(processes.filter(({ alive }) => alive))
    const what = dice.pick(swarm.disturbances)
    if (process === undefined) return
    this.tally(`disturbance: ${what}`)
    switch (what) {
      case "kill":
        this.crash(process, "out of the blue")
        break
      case "freeze":
        this.freeze(process)
        break
      case "jump":
        process.wallOffset += dice.between(-2_000, 2_000)
        this.trace(process, `clock jumps to ${process.wallOffset} ms ahead`)
        break
      case "stop":
        this.stop(process)
    }
  }

  #befall({ kind, forMs }: Trouble): void {
    if (this.healed) return
    const memory = Context.get(this.store, Memory.Memory)
    const { tables } = memory
    const waiting = [...tables.lanes.values()].flat()
    const held = [...tables.claims.values()].flatMap(({ messages }) => messages)
    switch (kind) {
      case "silence":
        this.silentUntil = this.timeline.now + forMs
        this.tally("trouble: silence")
        this.trace(null, `the store is silent for ${forMs} ms`)
        break
      case "unreadable": {
        const one = this.troubleDice.pick([...waiting, ...held])
        if (one === undefined) return
        this.unreadable.add(one.messageId)
        this.wasUnreadable.add(one.messageId)
        this.tally("trouble: unreadable")
        this.trace(null, `${this.nameOf(one.messageId)} can't be read any more`)
        break
      }
    }
  }

  // --------------------------------------------------------------------------------------------- the end

  /** Somebody wants the lists built anew, beside those that serve. */
  #rebuild(): void {
    this.trace(null, "the lists are to be built anew")
    Effect.runSync(Context.get(this.store, Projections).build("messages", 1, 0))
  }

  /** Rows that lack what was parked are built anew, each after a build that is under way and lacks it too. */
  #repairLists(): void {
    const { runs } = Context.get(this.store, Memory.Memory).tables
    const lacking = new Set(runs.map(({ name }) => name))
    const building = new Set<string>()
    const isBuilding = (name: string) => runs.some((run) => run.name === name && !run.live)
    const look = () => {
      for (const name of building) if (!isBuilding(name)) building.delete(name)
      for (const name of [...lacking].filter((name) => !isBuilding(name))) {
        const { version } = runs.find((run) => run.name === name)!
        Effect.runSync(Context.get(this.store, Projections).build(name, version, 0))
        lacking.delete(name)
        building.add(name)
      }
      this.#beingRebuilt = lacking.size + building.size
      if (this.#beingRebuilt > 0) this.timeline.after(200, look)
    }
    look()
  }

  /** Lists that passed over a stream are whole once they were built anew, which somebody has done when everything can be read. */
  lacksRepair(): boolean {
    return this.wasUnreadable.size > 0 && (!this.#listsAreRepaired || this.isBeingRebuilt())
  }

  isBeingRebuilt(): boolean {
    return this.#beingRebuilt > 0
  }

  #heal(): void {
    this.healed = true
    this.trace(null, "everything heals")
    for (const process of this.#restarts.keys()) process.thaw()
    if (this.wasUnreadable.size === 0) this.#readAll()
    else {
      this.timeline.after(STILL_UNREADABLE_MS, () => {
        this.oracle.readers.whileUnreadable(PROJECTED_WITHIN_MS)
        this.#readAll()
      })
    }
    this.#operators.release(() => {
      this.#released = true
    })
    // Killed processes are back, frozen ones have noticed, and one scan of every keeper has passed.
    const settledAt = this.timeline.now + 3_000 + this.swarm.leaseMs / 3 + 1_000
    this.#watch(settledAt, this.timeline.now + this.#bound())
  }

  /** A release that reads everything was started, and somebody repairs what is parked, until nothing is. */
  #readAll(): void {
    if (this.unreadable.size > 0) this.trace(null, "everything can be read")
    this.unreadable.clear()
    const { parked } = Context.get(this.store, Memory.Memory).tables
    const repair = () => {
      if (parked.size > 0) this.#tryAgain(true)
      else if (this.wasUnreadable.size > 0 && !this.#listsAreRepaired) {
        this.#listsAreRepaired = true
        this.#repairLists()
      }
      if (parked.size > 0 || this.isBeingRebuilt()) this.timeline.after(REPAIRED_EVERY_MS, repair)
    }
    this.#beingRebuilt = this.wasUnreadable.size
    if (this.troubles.length > 0) this.timeline.after(REPAIRED_EVERY_MS, repair)
  }

  /** Longest a message may take once nothing goes wrong: one wait, two leases and the clocks' disagreement. */
  #bound(): number {
    const { swarm } = this
    const waits = this.lanes.flatMap(({ retry }) => {
      const policy = retry ?? { strategy: "schedule", waitsMs: webhookWaitsMs }
      return Array.from({ length: 6 }, (_, index) => Math.max(waitAfter(policy, index + 1).longest, 3_000))
    })
    const wrong = [...this.#workers.values(), ...this.#apis.values()].map(({ process }) => Math.abs(process.wallOffset))
    return (
      Math.max(...waits) +
      4 * swarm.leaseMs +
      2 * Math.max(3_000, ...wrong) +
      4 * (swarm.circuit.openMaxMs + swarm.deadlineMs + PERMIT_SPARE_MS) +
      swarm.healAtMs +
      (this.troubles.length > 0 ? REPAIRED_WITHIN_MS + STILL_UNREADABLE_MS : 0) +
      // The last doubt before everything healed may have been the fourth.
      4 ** 4 * Math.max(...this.lanes.map(({ doubtMs }) => doubtMs)) +
      // Each message of a replay whose destination stands still may keep the next one waiting for a minute.
      (swarm.operations.includes("replay") ? 10 : 1) * 60_000
    )
  }

  #tryAgainLater(): void {
    this.timeline.after(TRIED_AGAIN_EVERY_MS, () => {
      if (this.healed) return
      this.#tryAgain(this.troubleDice.chance(0.5))
      this.#tryAgainLater()
    })
  }

  /** By a process whose release reads everything, or by one that can't read what the workers can't. */
  #tryAgain(readsAll: boolean): void {
    const process = this.troubleDice.pick([...this.#workers.values()].filter(({ process }) => process.alive))?.process
    if (process === undefined) return
    const ports = faultyPorts(this, process, readsAll)
    process.schedule(() => process.start(Effect.ignore(retryParked(() => true)), ports))
    this.tally("what was parked was tried again")
  }

  #watch(settledAt: number, until: number): void {
    this.timeline.after(500, () => {
      if (this.timeline.now > settledAt) this.oracle.hands.whileHealthy(2_500, this.swarm.leaseMs / 3 + 1_000)
      const open = [
        ...this.oracle.unfinished(),
        ...this.oracle.looseEnds(),
        ...(this.#asking === 0 && this.#released ? [] : ["somebody still asks"]),
        ...(this.lacksRepair() ? ["lists lack what could not be read"] : [])
      ]
      if (open.length === 0 && this.oracle.blockers().length === 0) return this.#stopAll()
      // At rest, but for those who wait behind dead letters, as their destination wants it.
      if (open.length === 0) {
        this.tally("lines were blocked at rest")
        return this.#operators.unblock(() => this.#watch(settledAt, this.timeline.now + this.#bound()))
      }
      if (this.timeline.now > until) return this.violate("I4 everything comes to an end", open.join(", "))
      this.#watch(settledAt, until)
    })
  }

  #stopAll(): void {
    this.#stopping = true
    const workers = [...this.#workers.values()].filter(({ process }) => process.alive)
    let left = workers.length
    const end = () => {
      this.oracle.atTheEnd()
      this.#ended = true
    }
    if (left === 0) end()
    for (const { process, stop } of workers) {
      process.schedule(() =>
        stop(() => {
          process.kill()
          if (--left === 0) end()
        })
      )
    }
    this.timeline.after(this.swarm.graceMs + 10_000, () => {
      if (left > 0) this.violate("I26 a graceful stop comes to an end", `${left} workers still run`)
    })
  }
}

const channelsOf = (world: World, process: Process) => {
  const channel = channelOf(world, process)
  return { webhook: channel, http: channel, whatsapp: channel }
}

const openStore = (timeline: Timeline): Store =>
  MemoryPorts.layerShared.pipe(
    Layer.provideMerge(Memory.layer),
    Layer.build,
    Effect.scoped,
    Effect.provideService(Clock.Clock, storeClock(timeline)),
    Effect.runSync
  )
