/** What stands around a message is looked up as it is; what it means is the domain's (explanation.test.ts). */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { acceptMessages } from "../../../src/application/accept/acceptMessage.ts"
import { commandMessage } from "../../../src/application/messages/commandMessage.ts"
import { explainMessage } from "../../../src/application/messages/explainMessage.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { Processes } from "../../../src/application/ports/Processes.ts"
import type { OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { newOrg } from "../../contracts/sample.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const layer = Layer.merge(MemoryPorts.layer, Fingerprints.layer)

const accept = Effect.fnUntraced(function* (orgId: OrgId) {
  const [accepted] = yield* acceptMessages(orgId, [
    {
      ...{ channel: "webhook", to: (yield* makeEndpoint(orgId)).id, eventType: null, templateCode: null },
      ...{ dossierId: null, orderingKey: null, correlationId: null, metadata: null, deliverAt: null },
      ...{ expiresAt: null, retry: null, body: "1", idempotencyKey: null }
    }
  ])
  if (accepted?.type !== "Accepted") return yield* Effect.die("it was not accepted")
  return accepted.message.id
})

const register = (id: string, roles: ReadonlyArray<string>) =>
  Effect.flatMap(Processes, ({ beat }) =>
    beat({ id, host: "here", pid: 1, roles, version: "1", broker: false, brokerAway: null, clockOffsetMs: null })
  )

describe("the workers that an explanation knows of", () => {
  it.effect("are those that live and send messages", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const id = yield* accept(orgId)
      const reason = Effect.map(explainMessage(orgId, id, null), (explained) => explained.reason)
      yield* register("front", ["api", "projector"])
      expect(yield* reason).toBe("NO_WORKER")
      yield* register("back", ["worker"])
      expect(yield* reason).toBe("DUE")
      yield* TestClock.adjust("1 minute")
      yield* register("front", ["api", "projector"])
      expect(yield* reason).toBe("NO_WORKER")
    }).pipe(Effect.provide(layer))
  )
})

describe("the explanation of a message that has ended", () => {
  it.effect(
    "reads no journal of its destination and of its org, now and of an earlier time; that of one that waits does",
    () =>
      Effect.gen(function* () {
        const journals = yield* Journals
        const orgId = newOrg()
        const id = yield* accept(orgId)
        const readFor = Effect.fnUntraced(function* (at: DateTime.Utc | null) {
          const read: Array<string> = []
          const load: typeof journals.load = (journal, part) => {
            read.push(journal.split("-")[0]!)
            return journals.load(journal, part)
          }
          const { status } = yield* Effect.provideService(explainMessage(orgId, id, at), Journals, {
            ...journals,
            load
          })
          return [status, ...read.toSorted()]
        })
        expect(yield* readFor(null)).toEqual(["QUEUED", "circuit", "endpoint", "org"])
        const waiting = yield* DateTime.now
        yield* TestClock.adjust("1 second")
        yield* commandMessage(orgId, id, "CancelMessage", null)
        expect(yield* readFor(null)).toEqual(["CANCELLED"])
        expect(yield* readFor(yield* DateTime.now)).toEqual(["CANCELLED"])
        expect(yield* readFor(waiting)).toEqual(["QUEUED", "circuit", "endpoint", "org"])
      }).pipe(Effect.provide(layer))
  )
})
