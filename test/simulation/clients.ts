/**
 * The callers of the API. They ask over a network that loses requests and answers, ask again under the same
 * key, race each other, cancel, replay and read, and tell the oracle every answer they get.
 */
import { Context, DateTime, Effect, Exit, Fiber, Result } from "effect"
import { type Acceptance, acceptMessages, type MessageRequest } from "../../src/application/accept/acceptMessage.ts"
import { commandMessage, eraseMessage, replayEdited } from "../../src/application/messages/commandMessage.ts"
import { hurryMessage } from "../../src/application/messages/hurryMessage.ts"
import { readMessage } from "../../src/application/messages/readMessage.ts"
import type { MessageId } from "../../src/domain/ids.ts"
import { ask, failureOf, insist } from "./asking.ts"
import { EPOCH } from "./clock.ts"
import type { Offer } from "./judge/answers.ts"
import { Process } from "./process.ts"
import type { LaneOfWorld, World } from "./world.ts"

const request = (world: World, number: number): Offer => {
  const { dice, timeline, swarm } = world
  const lane = dice.pick(world.lanes)
  const now = EPOCH + timeline.now
  const deliverIn = dice.chance(swarm.bursts)
    ? Math.max(1, Math.ceil(swarm.burstAtMs - timeline.now))
    : dice.chance(0.2)
      ? dice.between(1, 3_000)
      : null
  const expiresIn = dice.chance(0.3) ? (deliverIn ?? 0) + dice.pick([20, 300, 1_000, 3_000]) : null
  const at = (millis: number | null) => (millis === null ? null : DateTime.makeUnsafe(now + millis))
  return {
    orgId: lane.orgId,
    lane: lane.id,
    request: {
      channel: lane.channel,
      to: lane.channel === "whatsapp" ? `+4915112345${String(number).padStart(3, "0")}` : lane.id,
      eventType: dice.pick([null, "invoice.paid"]),
      templateCode: null,
      dossierId: null,
      orderingKey: lane.keys === 0 || dice.chance(0.1) ? null : `key-${dice.between(1, lane.keys)}`,
      correlationId: `request-${number}`,
      metadata: dice.chance(0.3) ? { number: String(number) } : null,
      deliverAt: at(deliverIn),
      expiresAt: at(expiresIn),
      retry: null,
      body: bodyOf(lane, String(number)),
      // Two requests share a key: a reuse in one org, no business of each other in two.
      idempotencyKey: dice.chance(0.6) ? `key-${number >> 1}` : null
    }
  }
}

const bodyOf = ({ channel, id }: LaneOfWorld, text: string): string =>
  channel === "whatsapp"
    ? `{ "from": "${id}", "text": "number ${text}" }`
    : `{"number":"${text}","digits":12345678901234567890.10}`

/** Starts every client of the world; `done` is called when the last one has nothing more to ask. */
export const startClients = (world: World, done: () => void): void => {
  const { dice, swarm } = world
  const { answers } = world.oracle
  const client = new Process("client", world.machinery)
  let requests = 0
  let edits = 0

  const judge = (offer: Offer, answer: Acceptance): MessageId | null => {
    switch (answer.type) {
      case "Accepted":
      case "AlreadyAccepted":
        answers.accepted(offer, answer.message)
        return answer.message.id
      case "KeyReused":
        answers.keyReused(offer)
        return null
      case "Refused":
        world.tally("a request was refused")
        return null
      case "Blocked":
        throw new Error("no client here speaks of a dossier, so none can be blocked")
      case "Suspended":
        throw new Error("nobody suspends an org here")
    }
  }

  const post = Effect.fnUntraced(function* (offer: Offer) {
    answers.offered(offer)
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
    for (const offer of offers) answers.offered(offer)
    const unknown: MessageRequest = {
      ...offers[0]!.request,
      channel: "webhook",
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

  const follow = Effect.fnUntraced(function* ({ orgId, lane }: Offer, id: MessageId) {
    const read = yield* insist(world, client, readMessage(orgId, id, null))
    answers.found(id, Result.isSuccess(read) ? read.success : null)
    if (dice.chance(0.25)) {
      yield* Effect.sleep(dice.next() * dice.pick([2, 50, 3_000]))
      const answer = yield* insist(world, client, commandMessage(orgId, id, "CancelMessage", "changed our mind"))
      if (Result.isSuccess(answer)) {
        answers.cancelled(id)
        world.tally("a cancel was accepted")
      }
    }
    if (dice.chance(0.2)) {
      yield* Effect.sleep(dice.next() * dice.pick([50, 3_000]))
      const answer = yield* insist(world, client, hurryMessage(orgId, id))
      if (Result.isSuccess(answer)) world.tally("a hurry was accepted")
    }
    for (let round = 0; round < 3 && dice.chance(0.6); round++) {
      yield* Effect.sleep(dice.next() * dice.pick([500, swarm.healAtMs / 2]))
      if (dice.chance(swarm.erasures)) {
        answers.erasing(id)
        const erased = yield* insist(world, client, eraseMessage(orgId, id, "asked for"))
        if (Result.isSuccess(erased)) answers.erased(id)
      }
      if (dice.chance(0.15)) {
        const answer = yield* insist(world, client, commandMessage(orgId, id, "CancelMessage", "changed our mind"))
        if (Result.isSuccess(answer)) answers.cancelled(id)
      }
      if (dice.chance(0.1)) {
        const answer = yield* insist(world, client, commandMessage(orgId, id, "DismissMessage", "seen"))
        if (Result.isSuccess(answer)) world.tally("a dismissal was accepted")
      }
      const edited = dice.chance(0.3) ? bodyOf(world.laneOf(lane), `edited ${edits++}`) : null
      if (edited !== null) answers.editing(id, edited)
      const replay =
        edited === null
          ? commandMessage(orgId, id, "ReplayMessage", null)
          : replayEdited(orgId, id, edited, "with other words")
      const answer = yield* insist(world, client, replay)
      if (Result.isSuccess(answer)) {
        answers.replayed(id, answer.success.epoch)
        world.tally(edited === null ? "a replay was accepted" : "an edited replay was accepted")
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
              lane: offer.lane,
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
