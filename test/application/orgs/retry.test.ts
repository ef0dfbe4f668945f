/** An org's own retry policy: of which messages it is, by whichever way they came in. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as AjvEventSchemas from "../../../src/adapters/ajv/AjvEventSchemas.ts"
import { obeyCommands } from "../../../src/adapters/api/commands.ts"
import { acceptMessages, type MessageRequest } from "../../../src/application/accept/acceptMessage.ts"
import { publishEvents } from "../../../src/application/events/publishEvents.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Events } from "../../../src/application/ports/Events.ts"
import { Orgs, unset } from "../../../src/application/ports/Orgs.ts"
import { replayOnce } from "../../../src/application/replays/replayDeadLetters.ts"
import { requestReplay } from "../../../src/application/replays/replays.ts"
import { presets, type RetryPolicy } from "../../../src/domain/delivery/retry.ts"
import { type EventId, MessageId, type OrgId } from "../../../src/domain/ids.ts"
import { makeAccount, makeEndpoint } from "../../contracts/destinations/samples.ts"
import { newOrg } from "../../contracts/sample.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const layer = Layer.mergeAll(MemoryPorts.layer, Fingerprints.layer, AjvEventSchemas.layer)
const test = (rule: string, body: Effect.Effect<void, unknown, Layer.Success<typeof layer>>) =>
  it.effect(rule, () => Effect.provide(body, layer))

const fixed = (baseMs: number): RetryPolicy => ({ strategy: "fixed", baseMs })
const ofOrg = fixed(3)

const set = (org: OrgId, retry: RetryPolicy | null) =>
  Effect.flatMap(Orgs, (orgs) => orgs.set(org, { ...unset, retry }))

const policyOf = Effect.fnUntraced(function* (id: MessageId) {
  const { facts } = yield* (yield* EventStore).load(id)
  const queued = facts[0]?.fact
  return queued?.type === "MessageQueued" ? queued.retry : null
})

const request = (to: string, change: Partial<MessageRequest> = {}): MessageRequest => ({
  ...{ channel: "webhook", to, eventType: null, templateCode: null, dossierId: null, orderingKey: null },
  ...{ correlationId: null, metadata: null, deliverAt: null, expiresAt: null, retry: null },
  ...{ body: '{"text":"hello"}', idempotencyKey: null },
  ...change
})

const send = Effect.fnUntraced(function* (org: OrgId, one: MessageRequest) {
  const [accepted] = yield* acceptMessages(org, [one])
  if (accepted?.type !== "Accepted") throw new Error(`not accepted: ${JSON.stringify(accepted)}`)
  return accepted.message.id
})

const publish = Effect.fnUntraced(function* (org: OrgId) {
  const [published] = yield* publishEvents(org, [
    {
      ...{ eventType: "order.paid", dossierId: null, orderingKey: null, correlationId: null, metadata: null },
      ...{ deliverAt: null, expiresAt: null, data: "{}", idempotencyKey: null }
    }
  ])
  if (published?.type !== "Published") throw new Error("not published")
  return published.event.id
})

const policiesOfEvent = Effect.fnUntraced(function* (id: EventId) {
  const { items } = yield* (yield* Events).messagesOf(id, { cursor: null, limit: 100 })
  return yield* Effect.forEach(items, policyOf)
})

describe("an org's retry policy", () => {
  test(
    "comes after the message's and the destination's own, and before the channel's, on every channel",
    Effect.gen(function* () {
      const [org, other] = [newOrg(), newOrg()]
      yield* set(org, ofOrg)
      const { id: plain } = yield* makeEndpoint(org)
      const { id: own } = yield* makeEndpoint(org, { retry: fixed(2) })
      const { id: theirs } = yield* makeEndpoint(other)
      yield* makeAccount(org)
      const policy = (to: string, change: Partial<MessageRequest> = {}, whose = org) =>
        Effect.flatMap(send(whose, request(to, change)), policyOf)
      expect(yield* policy(own, { retry: fixed(1) })).toEqual(fixed(1))
      expect(yield* policy(own)).toEqual(fixed(2))
      expect(yield* policy(plain)).toEqual(ofOrg)
      expect(yield* policy("+4915112345678", { channel: "whatsapp" })).toEqual(ofOrg)
      expect(yield* policy(theirs, {}, other)).toEqual(presets.webhook)
    })
  )

  test(
    "is a message's from its acceptance on, whatever the org's is afterwards",
    Effect.gen(function* () {
      const org = newOrg()
      const { id: to } = yield* makeEndpoint(org)
      yield* set(org, ofOrg)
      const before = yield* send(org, request(to))
      yield* set(org, null)
      expect(yield* policyOf(before)).toEqual(ofOrg)
      expect(yield* policyOf(yield* send(org, request(to)))).toEqual(presets.webhook)
    })
  )

  test(
    "is that of the messages of events, also of those that an endpoint had missed",
    Effect.gen(function* () {
      const org = newOrg()
      yield* set(org, ofOrg)
      const since = yield* DateTime.now
      yield* makeEndpoint(org)
      yield* makeEndpoint(org, { retry: fixed(2) })
      const event = yield* publish(org)
      expect(new Set(yield* policiesOfEvent(event))).toEqual(new Set([ofOrg, fixed(2)]))
      const { id: to } = yield* makeEndpoint(org)
      yield* requestReplay(org, { missed: { to, since } }, { reason: null, idempotencyKey: null })
      for (let step = 0; step < 6; step++) {
        yield* replayOnce()
        yield* TestClock.adjust("11 seconds")
      }
      expect(yield* policiesOfEvent(event)).toEqual(expect.arrayContaining([ofOrg, fixed(2), ofOrg]))
      expect(yield* policiesOfEvent(event)).toHaveLength(3)
    })
  )

  test(
    "is that of a message that came as a command",
    Effect.gen(function* () {
      const org = newOrg()
      yield* set(org, ofOrg)
      const { id: to } = yield* makeEndpoint(org)
      const text = JSON.stringify({ channel: "webhook", to, payloadJson: 1 })
      const json = { text, value: JSON.parse(text) as unknown }
      const [answer] = yield* obeyCommands("amqp", [{ type: "SendMessage", orgId: org, key: "k", json }])
      if (answer?.type !== "Done") throw new Error("refused")
      expect(yield* policyOf(MessageId.make(answer.id))).toEqual(ofOrg)
    })
  )
})
