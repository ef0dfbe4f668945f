/** An erasure ends when nothing can be left of the person, and not before. */
import { it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import * as NodeFingerprint from "../../../src/adapters/node/NodeFingerprint.ts"
import { carryOutErasures, requestErasure } from "../../../src/application/erasures/erasures.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { keepProjections } from "../../../src/application/log/projections/keepProjections.ts"
import { rebuildProjection } from "../../../src/application/log/projections/rebuild.ts"
import { type Erasure, Erasures } from "../../../src/application/ports/Erasures.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { retryParked } from "../../../src/application/truth/repair.ts"
import { delivered, newOrg, opened, settled, started } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as Memory from "../../model/Memory.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const layer = LogReader.layer.pipe(
  Layer.provideMerge(MemoryPorts.layerShared),
  Layer.provideMerge(Memory.layer),
  Layer.provideMerge(NodeFingerprint.layer)
)

describe("an erasure", () => {
  it.effect("waits for a message that the lists lack because it can't be read, and no other org's does", () =>
    Effect.gen(function* () {
      const erasures = yield* Erasures
      const [orgId, other] = [newOrg(), newOrg()]
      const queued = opened({ orgId, dossierId: "mine" })
      const begun = started(queued.after)
      yield* write(queued, begun, settled(begun.after, delivered))
      const { id } = queued.after
      const rows = (yield* Memory.Memory).tables.streams.get(id)!
      const right = rows[1]!
      rows[1] = { ...right, name: "Unheard@1" }
      const keeper = yield* Effect.forkChild(keepProjections)
      yield* TestClock.adjust("3 seconds")
      const own = (yield* requestErasure(orgId, { dossierId: "mine" }, null)) as Erasure
      const others = (yield* requestErasure(other, { dossierId: "mine" }, null)) as Erasure
      const eraser = yield* Effect.forkChild(carryOutErasures)
      yield* TestClock.adjust("5 minutes")
      expect((yield* erasures.get(other, others.id))!.endedAt).not.toBeNull()
      expect((yield* erasures.get(orgId, own.id))!.endedAt).toBeNull()
      rows[1] = right
      yield* rebuildProjection("messages")
      yield* TestClock.adjust("5 seconds")
      yield* retryParked(() => true)
      yield* TestClock.adjust("3 minutes")
      expect(yield* erasures.get(orgId, own.id)).toMatchObject({ messages: 1, endedAt: expect.anything() })
      const { facts } = yield* (yield* EventStore).load(id)
      expect(facts[0]!.fact).toMatchObject({ dossierId: null })
      yield* Fiber.interruptAll([keeper, eraser])
    }).pipe(Effect.provide(layer))
  )
})
