/**
 * The people who look after destinations and dead letters while messages are on their way: they hold and reset circuits,
 * pause and resume, change limits and what a dead letter does to its line, and ask for replays of many, now and then
 * twice, now and then calling one off. When everything heals, whatever they stopped is let go.
 */
import { Context, Effect, Exit, Fiber, Result } from "effect"
import { commandCircuit } from "../../src/application/destinations/commandCircuit.ts"
import { commandMessage } from "../../src/application/messages/commandMessage.ts"
import { Destinations } from "../../src/application/ports/Destinations.ts"
import { cancelReplay, readReplay, requestReplay } from "../../src/application/replays/replays.ts"
import type { RateLimit } from "../../src/domain/delivery/rateLimit.ts"
import type { OnDeadLetter } from "../../src/domain/message/queueChange.ts"
import { http, webhook, whatsapp } from "../contracts/destinations/samples.ts"
import { type ApiServices, ask, insist } from "./asking.ts"
import { Process } from "./process.ts"
import { type Operation, someRate } from "./swarm.ts"
import type { LaneOfWorld, World } from "./world.ts"

const setPaused = ({ channel, orgId, id }: LaneOfWorld, paused: boolean) =>
  Effect.flatMap(Destinations, (destinations) => destinations.setPaused(kindOf(channel), orgId, id, paused))

type Change = { readonly rateLimit: RateLimit } | { readonly onDeadLetter: OnDeadLetter }

const update = ({ channel, orgId, id }: LaneOfWorld, settings: Change) =>
  Effect.flatMap(Destinations, (destinations) => destinations.change(kindOf(channel), orgId, id, { settings }))

const kindOf = (channel: LaneOfWorld["channel"]) => ({ webhook, http, whatsapp })[channel]

export class Operators {
  readonly #world: World
  readonly #process: Process
  #requests = 0

  constructor(world: World) {
    this.#world = world
    this.#process = new Process("operator", world.machinery)
  }

  /** Works until everything heals; `done` is called when the last thing that was begun has ended. */
  start(done: () => void): void {
    const { dice, swarm, timeline } = this.#world
    const begun: Array<Fiber.Fiber<unknown, unknown>> = []
    const work = Effect.gen({ self: this }, function* () {
      while (swarm.operations.length > 0) {
        yield* Effect.sleep(-Math.log(1 - dice.next()) * swarm.operationMs)
        if (timeline.now > swarm.healAtMs * 0.9) break
        begun.push(yield* Effect.forkDetach(this.#operate(dice.pick(swarm.operations))))
      }
      yield* Effect.forEach(begun, Fiber.await, { discard: true })
    })
    this.#run(work, done)
  }

  /** Lets go what was stopped and is not let go by itself. */
  release(done: () => void): void {
    const { lanes, oracle } = this.#world
    this.#run(
      Effect.forEach(lanes, (lane) =>
        Effect.gen({ self: this }, function* () {
          yield* this.#insist(setPaused(lane, false))
          if (oracle.isHeld(lane.id)) yield* this.#reset(lane)
        })
      ),
      done
    )
  }

  /** Deals with the dead letters that others wait behind, one way or the other. */
  unblock(done: () => void): void {
    const { dice, oracle } = this.#world
    this.#run(
      Effect.forEach(oracle.blockers(), ({ id, lane, erased }): Effect.Effect<unknown> => {
        const destination = this.#world.laneOf(lane)
        return erased || dice.chance(0.5)
          ? this.#insist(update(destination, { onDeadLetter: "skip" }))
          : this.#insist(commandMessage(destination.orgId, id, "ReplayMessage", null))
      }),
      done
    )
  }

  #run(work: Effect.Effect<unknown>, done: () => void): void {
    this.#process.schedule(() => {
      this.#process.start(work, Context.empty()).addObserver((exit) => {
        if (Exit.isFailure(exit)) this.#world.violate("the operators worked", String(exit.cause))
        done()
      })
    })
  }

  #insist<A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E, ApiServices>) {
    return insist(this.#world, this.#process, effect)
  }

  #reset({ orgId, id }: LaneOfWorld) {
    return this.#insist(commandCircuit(orgId, id, { type: "ResetCircuit", reason: null }))
  }

  #operate(operation: Operation): Effect.Effect<unknown> {
    const { dice, lanes, oracle } = this.#world
    const troubled = lanes.filter(({ id }) => oracle.isInTrouble(id))
    const lane = dice.pick(troubled.length > 0 && dice.chance(0.7) ? troubled : lanes)
    const { orgId, id } = lane
    const aWhile = Effect.sleep(dice.next() * dice.pick([50, 1_000, 5_000]))
    this.#world.tally(`operation: ${operation}`)
    switch (operation) {
      case "reset":
        return this.#reset(lane)
      case "hold":
        return this.#insist(commandCircuit(orgId, id, { type: "HoldCircuit", reason: null })).pipe(
          Effect.andThen(aWhile),
          Effect.andThen(this.#reset(lane))
        )
      case "pause":
        return this.#insist(setPaused(lane, true)).pipe(
          Effect.andThen(aWhile),
          Effect.andThen(this.#insist(setPaused(lane, false)))
        )
      case "limit":
        return this.#insist(update(lane, { rateLimit: someRate(dice) }))
      case "policy":
        return this.#insist(update(lane, { onDeadLetter: dice.pick(["block", "skip"] as const) }))
      case "replay":
        return this.#replay()
    }
  }

  #replay(): Effect.Effect<unknown> {
    const world = this.#world
    const { dice, oracle } = world
    return Effect.gen({ self: this }, function* () {
      for (let looks = 0; looks < 10 && oracle.deadLetterLanes().length === 0; looks++)
        yield* Effect.sleep("300 millis")
      const { orgId, channel, id } = world.laneOf(dice.pick([...oracle.deadLetterLanes(), dice.pick(world.lanes).id]))
      const all = { filter: channel === "whatsapp" || dice.chance(0.5) ? {} : { to: id } }
      const wanted = dice.chance(0.5) ? all : { ids: oracle.someMessages() }
      const how = { reason: "try again", idempotencyKey: `replay-${++this.#requests}` }
      const request = requestReplay(orgId, wanted, how)
      if (dice.chance(0.3)) yield* ask(world, this.#process, request)
      const answer = yield* this.#insist(request)
      if (Result.isFailure(answer)) return world.violate("I20 one key, one replay", answer.failure._tag)
      if (dice.chance(0.3)) {
        // At once, or while somebody is at work on it.
        for (let looks = 0; looks < 400 && !oracle.hasBegun(answer.success.id); looks++) {
          if (dice.chance(0.005)) break
          yield* Effect.sleep("2 millis")
        }
        // One that is through can't be called off any more.
        yield* this.#insist(cancelReplay(orgId, answer.success.id, null))
      }
      yield* this.#insist(readReplay(orgId, answer.success.id))
    })
  }
}
