/**
 * Asking one of the API processes over a network that loses requests and answers.
 */
import { Effect, Exit, Result } from "effect"
import type { Fingerprint } from "../../src/application/ports/Fingerprint.ts"
import type { StorePorts } from "./faults.ts"
import type { Process } from "./process.ts"
import type { World } from "./world.ts"

export type ApiServices = StorePorts | Fingerprint

/** Long enough that whoever waits so long learns nothing any more. */
const PATIENCE_MS = 8_000

/** One request to some API process: its answer, or null when none came. */
export const ask = <A, E>(world: World, client: Process, effect: Effect.Effect<A, E, ApiServices>) =>
  Effect.callback<Exit.Exit<A, E> | null>((resume) => {
    const { dice, timeline, swarm } = world
    const give = (answer: Exit.Exit<A, E> | null) => client.schedule(() => resume(Effect.succeed(answer)))
    const patience = timeline.after(PATIENCE_MS, () => give(null))
    const travel = () => dice.next() * 5
    const lost = (probability: number) => !world.healed && dice.chance(probability)
    if (lost(swarm.lostRequests)) return world.decided(client, "request", "lost")
    timeline.after(travel(), () => {
      const api = world.someApi()
      if (api === null) return give(null)
      api.process.schedule(() => {
        api.process.start(effect, api.services).addObserver((exit) => {
          if (lost(swarm.lostAnswers)) return world.decided(client, "answer", "lost")
          timeline.after(travel(), () => {
            patience()
            give(exit)
          })
        })
      })
    })
  })

/** Asks until there is an answer that is not the store's silence. */
export const insist = <A, E extends { readonly _tag: string }>(
  world: World,
  client: Process,
  effect: Effect.Effect<A, E, ApiServices>
): Effect.Effect<Result.Result<A, E>> =>
  Effect.gen(function* () {
    for (;;) {
      const answer = yield* ask(world, client, effect)
      if (answer !== null && Exit.isSuccess(answer)) return Result.succeed(answer.value)
      const failure = answer === null ? null : yield* failureOf(world, answer)
      if (failure !== null && failure._tag !== "StoreUnavailable" && failure._tag !== "MessageBusy") {
        return Result.fail(failure)
      }
      yield* Effect.sleep(world.dice.between(50, 1_500))
    }
  })

/** What a request failed with. A defect is a bug of ours, whoever sees it first. */
export const failureOf = <E>(world: World, exit: Exit.Failure<unknown, E>): Effect.Effect<E | null> =>
  Effect.sync(() => {
    const found = Exit.findError(exit)
    if (Result.isSuccess(found)) return found.success
    world.violate("no request ends in a defect", String(exit.cause))
    return null
  })
