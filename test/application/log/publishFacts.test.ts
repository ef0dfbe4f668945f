import { it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue } from "effect"
import { describe, expect } from "vitest"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { type OutgoingFact, publishFacts } from "../../../src/application/log/publishFacts.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { Followers } from "../../../src/application/ports/Followers.ts"
import { opened, settled, started } from "../../contracts/sample.ts"
import { write } from "../../contracts/written.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const ports = Layer.provideMerge(LogReader.layer, Layer.fresh(MemoryPorts.layer))

const refused = {
  type: "Refused",
  error: { code: "http_400", message: "answered 400", retryable: false },
  status: 400,
  durationMs: 1
} as const

/** What can name a person. */
const personal = { to: "4915112345678", dossierId: "case-17", correlationId: "tx-4711", metadata: { name: "Ada" } }

/** A dead letter with this body. */
const dead = (body: string) => {
  const queued = opened({ ...personal, body })
  const first = started(queued.after)
  return [queued, first, settled(first.after, refused)]
}

describe("facts that are let out", () => {
  it.live("name no person, and go on behind a dead letter whose body does not open, which goes out without it", () =>
    Effect.gen(function* () {
      const [spoilt, whole] = [dead('"spoilt"'), dead('"whole"')]
      yield* write(...spoilt, ...whole)
      yield* (yield* Followers).begin("facts", null)
      const bodies = yield* Bodies
      const out = yield* Queue.unbounded<OutgoingFact>()
      const run = yield* publishFacts((facts) => Queue.offerAll(out, facts)).pipe(
        Effect.provideService(Bodies, {
          ...bodies,
          load: (id) => (id === spoilt[0]!.after.id ? Effect.die(new Error("does not open")) : bodies.load(id))
        }),
        Effect.forkChild
      )
      const facts = yield* Queue.takeBetween(out, 8, 8)
      yield* Fiber.interrupt(run)
      expect(facts.flatMap(({ deadLetter }) => (deadLetter === null ? [] : [deadLetter.body]))).toEqual([
        null,
        '"whole"'
      ])
      const data = facts.map((fact) => fact.data).join()
      expect(data).toContain('"code":"http_400"')
      expect(data).not.toMatch(/4915112345678|case-17|tx-4711|Ada|answered 400/)
    }).pipe(Effect.provide(ports))
  )
})
