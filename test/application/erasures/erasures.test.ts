/** An erasure ends when nothing can be left of the person, and not before. */
import { it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { carryOutErasures, requestErasure } from "../../../src/application/erasures/erasures.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { type Erasure, Erasures } from "../../../src/application/ports/Erasures.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { delivered, newOrg, opened, settled, started } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as Memory from "../../model/Memory.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const layer = LogReader.layer.pipe(
  Layer.provideMerge(MemoryPorts.layerShared),
  Layer.provideMerge(Memory.layer),
  Layer.provideMerge(Fingerprints.layer)
)

describe("an erasure", () => {
  it.effect("finds a message that no list has yet, and changes no fact", () =>
    Effect.gen(function* () {
      const erasures = yield* Erasures
      const { tables } = yield* Memory.Memory
      const orgId = newOrg()
      const queued = opened({ orgId, dossierId: "mine" })
      const begun = started(queued.after)
      yield* write(queued, begun, settled(begun.after, delivered))
      const { id } = queued.after
      const facts = () => tables.streams.get(id)!.map(({ name, data }) => [name, data])
      const before = facts()
      const erasure = (yield* requestErasure(orgId, { dossierId: "mine" }, null)) as Erasure
      const eraser = yield* Effect.forkChild(carryOutErasures)
      yield* TestClock.adjust("1 minute")
      expect(yield* erasures.get(orgId, erasure.id)).toMatchObject({ messages: 1, endedAt: expect.anything() })
      expect((yield* (yield* EventStore).load(id)).facts[0]!.fact).toMatchObject({ dossierId: null })
      expect(facts().slice(0, before.length)).toEqual(before)
      yield* Fiber.interrupt(eraser)
    }).pipe(Effect.provide(layer))
  )
})
