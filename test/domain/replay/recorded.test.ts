import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { ReplayFact, recorded } from "../../../src/domain/replay/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/replay/recorded.ts"

// One file per shape ever stored. Files are added, never edited: they are what production holds.
const folder = join(import.meta.dirname, "facts")
const names = readdirSync(folder).map((file) => file.replace(".json", ""))
const sample = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))

describe("the stored shapes", () => {
  it("have a sample each, and every fact has a shape", () => {
    expect(names.toSorted()).toEqual(Object.keys(recorded).toSorted())
    const types = ReplayFact.members.map((member) => member.fields.type.schema.literal)
    expect(names.map((name) => name.slice(0, name.indexOf("@"))).toSorted()).toEqual([...types].toSorted())
  })

  it.each(names)("%s can still be read, and is written again as its sample shows it", (name) => {
    const fact = Result.getOrThrow(fromRecorded({ name, data: JSON.stringify(sample(name)) }))
    expect(fact.type).toBe(name.slice(0, name.indexOf("@")))
    const written = toRecorded(fact)
    expect(written.name).toBe(name)
    expect(JSON.parse(written.data)).toEqual(sample(name))
    expect(fromRecorded(written)).toEqual(Result.succeed(fact))
  })

  it("keep a list of messages too", () => {
    const request = {
      ...(sample("ReplayRequested@1") as object),
      wanted: { ids: ["0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02"] }
    }
    const read = Result.getOrThrow(fromRecorded({ name: "ReplayRequested@1", data: JSON.stringify(request) }))
    expect(JSON.parse(toRecorded(read).data)).toEqual(request)
  })
})

describe("reading refuses", () => {
  it.each(["ReplayAdvanced@9", "Nothing@1", "toString"])("the name %s", (name) => {
    expect(Result.isFailure(fromRecorded({ name, data: "{}" }))).toBe(true)
  })

  it.each(['{"from":1', "null", '{"from":0,"to":1,"replayed":1}'])("data of another shape: %s", (data) => {
    const read = fromRecorded({ name: "ReplayAdvanced@1", data })
    expect(Result.isFailure(read) && read.failure).toMatchObject({ _tag: "UnreadableFact", name: "ReplayAdvanced@1" })
  })
})
