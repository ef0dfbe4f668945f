/** Streams as text, over memory. What a database adds is in test/adapters/postgres/streams.test.ts. */
import { describe, expect, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Result, Stream } from "effect"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import type { ArchivedFact } from "../../../src/application/ports/Archive.ts"
import { EventStore, type LoggedFact } from "../../../src/application/ports/EventStore.ts"
import { firstLine, lastLine, lineOf, parseLine } from "../../../src/application/truth/archiveFile.ts"
import { exportStreams } from "../../../src/application/truth/exportStreams.ts"
import { importStreams } from "../../../src/application/truth/importStreams.ts"
import { logStream, ownLog } from "../../../src/application/truth/logStream.ts"
import { verify } from "../../../src/application/truth/verify.ts"
import type { MessageId } from "../../../src/domain/ids.ts"
import { opened, started } from "../../contracts/sample.ts"
import { populated } from "../../contracts/store/everyPlace.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const layer = Layer.provideMerge(LogReader.layer, MemoryPorts.layer)
const inStore = Effect.provide(layer, { local: true })
const silent = () => Effect.void

const exported = Effect.gen(function* () {
  return yield* Stream.runCollect(exportStreams(yield* ownLog, true))
})
const imported = (lines: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    return yield* importStreams(Stream.fromIterable(lines), yield* ownLog, silent)
  })

const fact: ArchivedFact = {
  stream: "message-0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01",
  version: 1,
  name: "MessageQueued@1",
  at: DateTime.makeUnsafe("2026-01-01T12:00:00.001Z"),
  actor: 'who said ,"data":{}',
  data: '{"n" : 12345678901234567890, "t":",\\"data\\":"}'
}

describe("a line of an export", () => {
  it("gives back the fact to the byte, with what belongs to its message", () => {
    const data = {
      messageId: "0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01" as MessageId,
      key: { orgId: "acme" as never, key: "k", requestHash: "h" },
      bodyOf: null,
      body: '{"a":1.10}\n',
      queued: null,
      responses: [{ version: 3, epoch: 1, attempt: 2, body: "“no”", headers: null }]
    }
    const line = { position: 7, fact, besideFacts: data }
    expect(Result.getOrThrow(parseLine(lineOf(line)))).toEqual({ type: "Fact", line })
    const bare = { position: 7, fact: { ...fact, actor: null }, besideFacts: null }
    expect(Result.getOrThrow(parseLine(lineOf(bare)))).toEqual({ type: "Fact", line: bare })
  })

  it("is one line and JSON, whatever blanks the stored text has", () => {
    const text = lineOf({ position: 1, fact: { ...fact, data: '{\r\n"a":1\n}' }, besideFacts: null })
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text)).toMatchObject({ position: 1, data: { a: 1 } })
  })

  it.each([
    ["{", "is not JSON"],
    ["[1]", 'is not a fact of an export: "position" is missing or wrong'],
    ["null", "is not a JSON object"],
    [firstLine(true).replace('"format":1', '"format":2'), "has the format 2"],
    [lineOf({ position: 1, fact, besideFacts: null }).replace('"version":1', '"version":"1"'), '"version" is missing'],
    [lineOf({ position: 1, fact: { ...fact, stream: "nothing" }, besideFacts: null }), '"stream" is missing or wrong'],
    [lineOf({ position: 1, fact: { ...fact, stream: "message-7" }, besideFacts: null }), '"stream" is missing or wrong']
  ])("is refused with the reason: %s", (text, reason) => {
    expect(Result.isFailure(parseLine(text)) && parseLine(text)).toMatchObject({
      failure: expect.stringContaining(reason)
    })
  })
})

describe("a file that is not a whole export", () => {
  const nth = (position: number) => lineOf({ position, fact: { ...fact, version: position }, besideFacts: null })
  const files: ReadonlyArray<readonly [what: string, lines: ReadonlyArray<string>, line: number]> = [
    ["has no first line", [nth(1), lastLine(1)], 1],
    ["begins twice", [firstLine(true), firstLine(true)], 2],
    ["was cut off", [firstLine(true), nth(1)], 2],
    ["lacks a line", [firstLine(true), nth(1), nth(3), lastLine(2)], 3],
    ["counts otherwise", [firstLine(true), nth(1), lastLine(2)], 3],
    ["goes on after its end", [firstLine(true), lastLine(0), nth(1)], 3],
    ["is empty", [], 0]
  ]
  it.live.each(files)("%s, and is refused at that line", ([, lines, line]) =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(imported(lines))).toMatchObject({ _tag: "NotAnExport", line })
    }).pipe(inStore)
  )
})

describe("an export of everything there is", () => {
  it.live("makes the same store of an empty one", () =>
    Effect.gen(function* () {
      const first = yield* Effect.andThen(populated, exported).pipe(inStore)
      const second = yield* Effect.gen(function* () {
        yield* imported(first)
        expect((yield* verify(silent)).findings).toEqual([])
        return yield* exported
      }).pipe(inStore)
      expect(second).toEqual(first)
    })
  )
})

describe("a log whose transactions overlapped", () => {
  it.live("is read with each stream by its versions, and everything else in place", () =>
    Effect.gen(function* () {
      const log = yield* ownLog
      const step = opened()
      const other = opened()
      for (const { entry } of [step, other, started(step.after)]) yield* log.store.append([entry])
      const all = yield* log.store.readAll(null, 10)
      const turned: ReadonlyArray<LoggedFact> = [all[2]!, all[1]!, all[0]!].map((each, place) => ({
        ...each,
        position: all[place]!.position
      }))
      const store = EventStore.of({ ...log.store, readAll: (after) => Effect.succeed(after === null ? turned : []) })
      const read = yield* Stream.runCollect(logStream({ ...log, store }))
      expect(read.map(({ stream, version }) => [stream, version])).toEqual(
        all.map(({ stream, version }) => [stream, version])
      )
    }).pipe(inStore)
  )
})
