/** The facts of a journal in pages: a page reads no more than it can hold, and its cursor leads on to all. */
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { readStream } from "../../../src/application/messages/readStream.ts"
import { Journals } from "../../../src/application/ports/Journals.ts"
import { newOrg, now } from "../../contracts/sample.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

const MB = 1024 * 1024

it.effect("a journal of large facts is told in pages of so many bytes, and one of small facts in one", () =>
  Effect.gen(function* () {
    const orgId = newOrg()
    const journals = yield* Journals
    const factOf = (text: string) => ({ name: "EventTypeChanged@1", data: JSON.stringify({ orgId, name: text }) })
    const store = (stream: `${string}-${string}`, text: string) =>
      journals.append(
        stream,
        0,
        Array.from({ length: 450 }, () => factOf(text)),
        now(),
        null
      )
    const large = "eventType-01910000-0000-7000-8000-000000000001"
    const small = "eventType-01910000-0000-7000-8000-000000000002"
    yield* store(large, "x".repeat(10_000))
    yield* store(small, "x")
    const versions: Array<number> = []
    let bytesMax = 0
    for (let cursor: string | null = null; ; ) {
      const page: Effect.Success<ReturnType<typeof readStream>> = yield* readStream(orgId, large, {
        cursor,
        limit: 1_000
      })
      versions.push(...page.items.map(({ version }) => version))
      bytesMax = Math.max(
        bytesMax,
        page.items.reduce((sum, { data }) => sum + data.length, 0)
      )
      if (page.nextCursor === null) break
      cursor = page.nextCursor
    }
    expect(versions).toEqual(Array.from({ length: 450 }, (_, n) => n + 1))
    expect(bytesMax).toBeLessThan(2.5 * MB)
    const page = yield* readStream(orgId, small, { cursor: null, limit: 430 })
    expect([page.items.length, page.nextCursor]).toEqual([430, "430"])
    expect((yield* readStream(orgId, small, { cursor: "430", limit: 430 })).items.length).toBe(20)
  }).pipe(Effect.provide(LogReader.layer.pipe(Layer.provideMerge(MemoryPorts.layer))))
)
