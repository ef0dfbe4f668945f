/** What every Journals must do. `layer` gives an empty store to each test. */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import type { StoreUnavailable } from "../../../src/application/ports/errors.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { now, opened, readLogUntil } from "../sample.ts"

export const journalsContract = <E>(name: string, layer: Layer.Layer<Journals | EventStore, E>) => {
  const test = (rule: string, body: Effect.Effect<void, StoreUnavailable, Journals | EventStore>) =>
    it.live(rule, () => Effect.provide(body, layer))
  const journal = () => `circuit-${randomUUID()}` as const
  const fact = (n: number) => ({ name: "Counted@1", data: `{"n":${n}}` })

  describe(`${name} journals`, () => {
    test(
      "are empty until somebody writes",
      Effect.gen(function* () {
        const journals = yield* Journals
        const one = journal()
        expect([yield* journals.load(one), yield* journals.last(one)]).toEqual([[], null])
      })
    )

    test(
      "give back what was written, in order, each under its own name",
      Effect.gen(function* () {
        const journals = yield* Journals
        const [one, other] = [journal(), journal()]
        const at = now()
        expect(yield* journals.append(one, 0, [fact(1), fact(2)], at, "operator")).toBe("Appended")
        expect(yield* journals.append(other, 0, [fact(9)], at, null)).toBe("Appended")
        expect(yield* journals.append(one, 2, [fact(3)], at, "operator")).toBe("Appended")
        expect(yield* journals.load(one)).toEqual(
          [1, 2, 3].map((n) => ({ ...fact(n), forgettable: null, version: n, at, actor: "operator" }))
        )
        expect(yield* journals.load(other)).toHaveLength(1)
        expect(yield* journals.last(one)).toEqual({ ...fact(3), forgettable: null, version: 3, at, actor: "operator" })
        expect(yield* journals.last(other)).toEqual({ ...fact(9), forgettable: null, version: 1, at, actor: null })
        const part = (after: number, limit: number) =>
          Effect.map(journals.load(one, { after, limit }), (facts) => facts.map(({ version }) => version))
        expect([yield* part(0, 1), yield* part(1, 9), yield* part(1, 1), yield* part(3, 9)]).toEqual([
          [1],
          [2, 3],
          [2],
          []
        ])
      })
    )

    for (const expected of [0, 2]) {
      test(
        `refuse an append at version ${expected} when the journal is at 1, and write nothing`,
        Effect.gen(function* () {
          const journals = yield* Journals
          const one = journal()
          yield* journals.append(one, 0, [fact(1)], now(), null)
          expect(yield* journals.append(one, expected, [fact(2), fact(3)], now(), null)).toBe("VersionConflict")
          expect(yield* journals.load(one)).toHaveLength(1)
        })
      )
    }

    test(
      "let one of many racers win each version",
      Effect.gen(function* () {
        const journals = yield* Journals
        const one = journal()
        const answers = yield* Effect.all(
          Array.from({ length: 20 }, (_, n) => journals.append(one, 0, [fact(n), fact(n)], now(), null)),
          { concurrency: "unbounded" }
        )
        expect(answers.filter((answer) => answer === "Appended")).toHaveLength(1)
        expect(yield* journals.load(one)).toHaveLength(2)
      })
    )

    test(
      "stand in the log of all facts under their names, and are no messages",
      Effect.gen(function* () {
        const journals = yield* Journals
        const store = yield* EventStore
        const one = journal()
        const at = now()
        yield* journals.append(one, 0, [fact(1), fact(2)], at, "operator")
        const { entry } = opened()
        yield* store.append([entry])
        const seen = yield* readLogUntil((facts) => facts.length >= 3)
        expect(seen.map(({ messageId }) => messageId)).toEqual([null, null, entry.messageId])
        expect(seen[1]).toMatchObject({ stream: one, version: 2, at, actor: "operator", ...fact(2) })
        expect(seen[2]).toMatchObject({ stream: `message-${entry.messageId}`, version: 1 })
      })
    )
  })
}
