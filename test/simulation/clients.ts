/**
 * The callers of the API. They ask over a network that loses requests and answers, ask again under the same
 * key, race each other, cancel, replay and read, and tell the oracle every answer they get.
 */
import { Context, DateTime, Effect, Exit, Fiber, Result } from "effect"
import { type Acceptance, acceptMessages, type MessageRequest } from "../../src/application/acceptMessage.ts"
import { commandMessage } from "../../src/application/commandMessage.ts"
import type { Fingerprint } from "../../src/application/ports/Fingerprint.ts"
import { readMessage } from "../../src/application/readMessage.ts"
import type { MessageId } from "../../src/domain/ids.ts"
import { EPOCH } from "./clock.ts"
import type { StorePorts } from "./faults.ts"
import type { Offer } from "./oracle.ts"
import { Process } from "./process.ts"
import type { World } from "./world.ts"

export type ApiServices = StorePorts | Fingerprint

/** Long enough that whoever waits so long learns nothing any more. */
const PATIENCE_MS = 8_000

/** One request to some API process: its answer, or null when none came. */
const ask = <A, E>(world: World, client: Process, effect: Effect.Effect<A, E, ApiServices>) =>
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
const insist = <A, E extends { readonly _tag: string }>(
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
const failureOf = <E>(world: World, exit: Exit.Failure<unknown, E>): Effect.Effect<E | null> =>
  Effect.sync(() => {
    const found = Exit.findError(exit)
    if (Result.isSuccess(found)) return found.success
    world.violate("no request ends in a defect", String(exit.cause))
    return null
  })

const request = (world: World, number: number): Offer => {
  const { dice, timeline } = world
  const lane = dice.pick(world.lanes)
  const now = EPOCH + timeline.now
  const deliverIn = dice.chance(0.2) ? dice.between(1, 3_000) : null
  const expiresIn = dice.chance(0.15) ? (deliverIn ?? 0) + dice.pick([20, 500, 5_000]) : null
  const at = (millis: number | null) => (millis === null ? null : DateTime.makeUnsafe(now + millis))
  return {
    orgId: lane.orgId,
    request: {
      channel: "webhook",
      to: lane.id,
      eventType: dice.pick([null, "invoice.paid"]),
      templateCode: null,
      dossierId: null,
      orderingKey: null,
      correlationId: `request-${number}`,
      metadata: dice.chance(0.3) ? { number: String(number) } : null,
      deliverAt: at(deliverIn),
      expiresAt: at(expiresIn),
      retry: null,
      body: `{"number":${number},"digits":12345678901234567890.10}`,
      // Two requests share a key: a reuse in one org, no business of each other in two.
      idempotencyKey: dice.chance(0.6) ? `key-${number >> 1}` : null
    }
  }
}

/** Starts every client of the world; `done` is called when the last one has nothing more to ask. */
export const startClients = (world: World, done: () => void): void => {
  const { dice, swarm, oracle } = world
  const client = new Process("client", world.machinery)
  let requests = 0

  const judge = (offer: Offer, answer: Acceptance): MessageId | null => {
    switch (answer.type) {
      case "Accepted":
      case "AlreadyAccepted":
        oracle.accepted(offer, answer.message)
        return answer.message.id
      case "KeyReused":
        oracle.keyReused(offer)
        return null
      case "Refused":
        world.tally("a request was refused")
        return null
    }
  }

  const post = Effect.fnUntraced(function* (offer: Offer) {
    oracle.offered(offer)
    const accept = Effect.map(acceptMessages(offer.orgId, [offer.request]), (answers) => answers[0]!)
    if (offer.request.idempotencyKey !== null) {
      const answer = yield* insist(world, client, accept)
      return Result.isSuccess(answer) ? judge(offer, answer.success) : null
    }
    // Without a key nobody may ask twice: what became of it stays open when the answer is lost.
    const answer = yield* ask(world, client, accept)
    if (answer === null) return null
    if (Exit.isSuccess(answer)) return judge(offer, answer.value)
    yield* failureOf(world, answer)
    return null
  })

  /** Several in one request, one of them for an endpoint that does not exist. */
  const postBatch = Effect.fnUntraced(function* (offers: ReadonlyArray<Offer>) {
    for (const offer of offers) oracle.offered(offer)
    const unknown: MessageRequest = {
      ...offers[0]!.request,
      to: "00000000-0000-4000-8000-000000000000",
      idempotencyKey: null
    }
    const answer = yield* ask(
      world,
      client,
      acceptMessages(offers[0]!.orgId, [...offers.map((offer) => offer.request), unknown])
    )
    if (answer === null || Exit.isFailure(answer)) return null
    if (answer.value.at(-1)?.type !== "Refused") world.violate("an unknown endpoint is refused", "it was not")
    const ids = offers.map((offer, index) => judge(offer, answer.value[index]!))
    return ids[0] ?? null
  })

  const follow = Effect.fnUntraced(function* ({ orgId }: Offer, id: MessageId) {
    const read = yield* insist(world, client, readMessage(orgId, id, null))
    oracle.found(id, Result.isSuccess(read) ? read.success : null)
    if (dice.chance(0.25)) {
      yield* Effect.sleep(dice.next() * dice.pick([2, 50, 3_000]))
      const answer = yield* insist(world, client, commandMessage(orgId, id, "CancelMessage", "changed our mind"))
      if (Result.isSuccess(answer)) {
        oracle.cancelled(id)
        world.tally("a cancel was accepted")
      }
    }
    for (let round = 0; round < 3 && dice.chance(0.6); round++) {
      yield* Effect.sleep(dice.next() * dice.pick([500, swarm.healAtMs / 2]))
      const answer = yield* insist(world, client, commandMessage(orgId, id, "ReplayMessage", null))
      if (Result.isSuccess(answer)) {
        oracle.replayed(id, answer.success.epoch)
        world.tally("a replay was accepted")
      }
    }
  })

  const one = Effect.gen(function* () {
    yield* Effect.sleep(dice.next() * Math.min(swarm.arrivalMs, swarm.healAtMs * 0.7))
    const offer = request(world, ++requests)
    if (dice.chance(0.15)) {
      const inOneOrg = [offer, request(world, ++requests), request(world, ++requests)].filter(
        ({ orgId }) => orgId === offer.orgId
      )
      const id = yield* postBatch(inOneOrg)
      if (id !== null) yield* follow(inOneOrg[0]!, id)
      return
    }
    const rivals: Array<Fiber.Fiber<unknown, unknown>> = []
    if (offer.request.idempotencyKey !== null) {
      if (dice.chance(0.3)) rivals.push(yield* Effect.forkDetach(post(offer)))
      if (dice.chance(0.15)) {
        const other = request(world, ++requests)
        rivals.push(
          yield* Effect.forkDetach(
            post({
              orgId: offer.orgId,
              request: { ...offer.request, body: other.request.body, correlationId: `request-${requests}` }
            })
          )
        )
      }
    }
    const id = yield* post(offer)
    if (id !== null) yield* follow(offer, id)
    yield* Effect.forEach(rivals, Fiber.await, { discard: true })
  })

  const all = Effect.forEach(Array.from({ length: swarm.messages }), () => one, {
    concurrency: "unbounded",
    discard: true
  })
  client.schedule(() => {
    client.start(all, Context.empty()).addObserver((exit) => {
      if (Exit.isFailure(exit)) world.violate("the clients ran", String(exit.cause))
      done()
    })
  })
}
