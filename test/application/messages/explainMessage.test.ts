/** What stands around a message is looked up as it is; what it means is the domain's (explanation.test.ts). */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as NodeFingerprint from "../../../src/adapters/node/NodeFingerprint.ts"
import { acceptMessages } from "../../../src/application/accept/acceptMessage.ts"
import { explainMessage } from "../../../src/application/messages/explainMessage.ts"
import { Processes } from "../../../src/application/ports/Processes.ts"
import { makeEndpoint } from "../../contracts/destinations/samples.ts"
import { newOrg } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const layer = Layer.merge(MemoryPorts.layer, NodeFingerprint.layer)

const register = (id: string, roles: ReadonlyArray<string>) =>
  Effect.flatMap(Processes, ({ register }) =>
    register({ id, host: "here", pid: 1, roles, version: "1", broker: false, clockOffsetMs: null })
  )

describe("the workers that an explanation knows of", () => {
  it.effect("are those that live and send messages", () =>
    Effect.gen(function* () {
      const orgId = newOrg()
      const [accepted] = yield* acceptMessages(orgId, [
        {
          ...{ channel: "webhook", to: (yield* makeEndpoint(orgId)).id, eventType: null, templateCode: null },
          ...{ dossierId: null, orderingKey: null, correlationId: null, metadata: null, deliverAt: null },
          ...{ expiresAt: null, retry: null, body: "1", idempotencyKey: null }
        }
      ])
      const reason = Effect.gen(function* () {
        if (accepted?.type !== "Accepted") return yield* Effect.die("it was not accepted")
        return (yield* explainMessage(orgId, accepted.message.id, null)).reason
      })
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
