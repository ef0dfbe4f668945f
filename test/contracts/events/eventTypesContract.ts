/** What every adapter of `EventTypes` promises. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { type EventType, type EventTypeDefinition, EventTypes } from "../../../src/application/ports/EventTypes.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { newOrg, type StorePorts } from "../sample.ts"

const plain: EventTypeDefinition = { description: null, schema: null, example: null, enforce: false }

export const eventTypesContract = <E>(name: string, layer: Layer.Layer<StorePorts, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, StorePorts>) =>
    it.live(rule, () => Effect.provide(body, layer), 20_000)

  describe(`${name} event types`, () => {
    test(
      "are kept as they were written, and each change with its fact",
      Effect.gen(function* () {
        const types = yield* EventTypes
        const orgId = newOrg()
        const definition = { description: "d", schema: '{"minimum": 1.10}', example: "[ 1.10 ]", enforce: true }
        const made = yield* types.create(orgId, "order.paid", definition)
        expect(made).toMatchObject({ ...definition, orgId, name: "order.paid", version: 1, archived: false })
        const { id } = made as EventType
        expect(yield* types.get(orgId, "order.paid")).toEqual(made)
        expect(yield* types.change(orgId, "order.paid", plain)).toMatchObject({ ...plain, id, version: 2 })
        expect(yield* types.archive(orgId, "order.paid")).toMatchObject({ id, version: 3, archived: true })
        expect(yield* types.archive(orgId, "order.paid")).toBeNull()
        expect(yield* types.change(orgId, "order.paid", plain)).toMatchObject({ id, version: 4, archived: false })
        const facts = yield* (yield* Journals).load(`event-type-${id}`)
        expect(facts.map((fact) => fact.name)).toEqual([
          "EventTypeCreated@1",
          "EventTypeChanged@1",
          "EventTypeArchived@1",
          "EventTypeChanged@1"
        ])
        expect(facts.every(({ data }) => !data.includes("1.10"))).toBe(true)
      })
    )

    test(
      "have one entry for each name of an org, archived or not, whoever races for it",
      Effect.gen(function* () {
        const types = yield* EventTypes
        const orgId = newOrg()
        const made = yield* Effect.all(
          Array.from({ length: 5 }, () => types.create(orgId, "a", plain)),
          { concurrency: "unbounded" }
        )
        expect(made.filter((each) => each === "Taken")).toHaveLength(4)
        yield* types.archive(orgId, "a")
        expect(yield* types.create(orgId, "a", plain)).toBe("Taken")
        expect(yield* types.create(newOrg(), "a", plain)).not.toBe("Taken")
        expect(yield* types.get(newOrg(), "a")).toBeNull()
        expect(yield* types.change(newOrg(), "a", plain)).toBeNull()
        expect(yield* types.archive(newOrg(), "a")).toBeNull()
      })
    )

    test(
      "are listed by name, archived ones on request",
      Effect.gen(function* () {
        const types = yield* EventTypes
        const orgId = newOrg()
        for (const each of ["b", "c", "a"]) yield* types.create(orgId, each, plain)
        yield* types.create(newOrg(), "x", plain)
        yield* types.archive(orgId, "b")
        const listed = Effect.fnUntraced(function* (archived: boolean) {
          const names: Array<string> = []
          for (let cursor: string | null = null; ; ) {
            const page: Effect.Success<ReturnType<typeof types.list>> = yield* types.list(orgId, archived, {
              cursor,
              limit: 1
            })
            names.push(...page.items.map((type) => type.name))
            if (page.nextCursor === null) return names
            cursor = page.nextCursor
          }
        })
        expect(yield* listed(false)).toEqual(["a", "c"])
        expect(yield* listed(true)).toEqual(["a", "b", "c"])
      })
    )

    test(
      "are a catalogue that is enforced while one of them is",
      Effect.gen(function* () {
        const types = yield* EventTypes
        const orgId = newOrg()
        const known = yield* types.create(orgId, "order.paid", plain)
        expect(yield* types.entry(orgId, "order.paid")).toEqual({ isEnforced: false, type: known })
        expect(yield* types.unfulfilled(orgId, ["nothing"])).toEqual([])
        yield* types.create(orgId, "order.late", { ...plain, enforce: true })
        expect(yield* types.entry(orgId, "order.paid")).toEqual({ isEnforced: true, type: known })
        expect(yield* types.entry(orgId, "nothing")).toEqual({ isEnforced: true, type: null })
        expect(yield* types.entry(newOrg(), "order.paid")).toEqual({ isEnforced: false, type: null })
        const wishes = ["order.paid", "order.*", "*", "order", "orde.*", "order.paid.*", "x_*", "order.%"]
        expect((yield* types.unfulfilled(orgId, wishes)).toSorted()).toEqual(
          ["order", "orde.*", "order.paid.*", "x_*", "order.%"].toSorted()
        )
        yield* types.archive(orgId, "order.paid")
        expect((yield* types.entry(orgId, "order.paid")).type).toBeNull()
        expect(yield* types.unfulfilled(orgId, ["order.paid"])).toEqual(["order.paid"])
        yield* types.archive(orgId, "order.late")
        expect((yield* types.entry(orgId, "order.paid")).isEnforced).toBe(false)
      })
    )
  })
}
