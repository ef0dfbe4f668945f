import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { MessageFact, recorded } from "../../../src/domain/message/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/message/recorded.ts"
import { anyFact } from "../arbitraries.ts"
import { deadLettered, failed, started, succeeded } from "./samples.ts"

// One file per shape ever stored. Files are added, never edited: they are what production holds.
const folder = join(import.meta.dirname, "facts")
const names = readdirSync(folder).map((file) => file.replace(".json", ""))
const sample = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
const read = (name: string, data = sample(name)) => fromRecorded({ name, data: JSON.stringify(data) })

const typeOf = (name: string) => name.slice(0, name.indexOf("@"))
const newest = (type: string) =>
  names
    .filter((name) => typeOf(name) === type)
    .toSorted((a, b) => Number(a.split("@")[1]) - Number(b.split("@")[1]))
    .at(-1)

describe("the stored shapes", () => {
  it("have a sample each, and every fact has a shape", () => {
    expect(names.toSorted()).toEqual(Object.keys(recorded).toSorted())
    const types = MessageFact.members.map((member) => member.fields.type.schema.literal)
    expect([...new Set(names.map(typeOf))].toSorted()).toEqual([...types].toSorted())
  })

  it.each(names)("%s can still be read", (name) => {
    expect(Result.getOrThrow(read(name)).type).toBe(typeOf(name))
  })

  it.each(names)("%s leaves its type to its name", (name) => {
    expect(sample(name)).not.toHaveProperty("type")
  })

  it.each(names)("%s is written again in the newest shape of its type", (name) => {
    const fact = Result.getOrThrow(read(name))
    const written = toRecorded(fact)
    expect(written.name).toBe(newest(fact.type))
    expect(fromRecorded(written)).toEqual(Result.succeed(fact))
  })

  it.each(names.filter((name) => name === newest(typeOf(name))))("%s is written as its sample shows it", (name) => {
    expect(JSON.parse(toRecorded(Result.getOrThrow(read(name))).data)).toEqual(sample(name))
  })
})

describe("writing", () => {
  it("puts down exactly what the schema would, whichever way it takes", () => {
    const encode = Schema.encodeSync(MessageFact)
    fc.assert(
      fc.property(anyFact, (fact) => {
        const { name, data } = toRecorded(fact)
        const { type, ...encoded } = encode(fact)
        expect(name).toBe(newest(type))
        expect(data).toBe(JSON.stringify(encoded))
      }),
      { numRuns: 500 }
    )
  })

  it("and reading again give the same fact", () => {
    fc.assert(
      fc.property(anyFact, (fact) => {
        expect(fromRecorded(toRecorded(fact))).toEqual(Result.succeed(fact))
      }),
      { numRuns: 500 }
    )
  })

  it("repeats no type inside the data", () => {
    fc.assert(
      fc.property(anyFact, (fact) => {
        expect(JSON.parse(toRecorded(fact).data)).not.toHaveProperty("type")
      })
    )
  })
})

describe("writing refuses what could never be read again", () => {
  it.each<[string, MessageFact]>([
    ["half a millisecond", succeeded(1, { durationMs: 12.5 })],
    ["an attempt that is no number", started(Number.NaN)],
    ["an error without a code", deadLettered("attempts used up", { code: "", message: "", retryable: true })],
    ["a failure without a code", failed(1, null, { error: { code: "", message: "", retryable: true } })]
  ])("%s", (_, fact) => {
    expect(() => toRecorded(fact)).toThrow()
  })
})

describe("reading refuses", () => {
  const refusal = (name: string, data: string) => {
    const read = fromRecorded({ name, data })
    return Result.isFailure(read) ? read.failure : null
  }

  it.each(["AttemptStarted@9", "AttemptStarted", "Nothing@1", "toString", "__proto__"])("the name %s", (name) => {
    expect(refusal(name, "{}")).toMatchObject({ _tag: "UnreadableFact", name })
  })

  it("data of another shape, naming the field", () => {
    expect(refusal("AttemptStarted@1", `{"epoch":1}`)?.message).toContain(`["attempt"]`)
  })

  it("data that belongs to another fact", () => {
    expect(refusal("AttemptStarted@1", `{"proof":"response"}`)).toMatchObject({ _tag: "UnreadableFact" })
  })

  it.each([`{"epoch":1`, "", "null", "[]", `"text"`])("data that is no object: %s", (data) => {
    expect(refusal("AttemptStarted@1", data)).toMatchObject({ _tag: "UnreadableFact", name: "AttemptStarted@1" })
  })

  it("data that claims another type than its name", () => {
    expect(refusal("AttemptStarted@1", `{"type":"MessageCancelled","epoch":1,"attempt":1}`)).toMatchObject({
      _tag: "UnreadableFact"
    })
  })
})
