/** `facts/` holds one sample of each shape ever stored: added, never edited. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { recorded } from "../../../src/domain/circuit/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/circuit/recorded.ts"

const folder = join(import.meta.dirname, "facts")
const names = readdirSync(folder).map((file) => file.replace(/\.json$/, ""))
const sample = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
const newest = (type: string) =>
  names
    .filter((name) => name.startsWith(`${type}@`))
    .toSorted()
    .at(-1)
const read = (name: string) => fromRecorded({ name, data: JSON.stringify(sample(name)) })

describe("facts of a circuit", () => {
  it("have a sample of every shape ever written", () => {
    expect(names.toSorted()).toEqual(Object.keys(recorded).toSorted())
  })

  it.each(names)("%s is read, and written again in the newest shape of its type", (name) => {
    const fact = Result.getOrThrow(read(name))
    const written = toRecorded(fact)
    expect(written.name).toBe(newest(fact.type))
    expect(fromRecorded(written)).toEqual(Result.succeed(fact))
    if (name === written.name) expect(JSON.parse(written.data)).toEqual(sample(name))
  })

  it.each([
    ["CircuitMelted@1", "{}"],
    ["CircuitOpened@9", "{}"],
    ["CircuitOpened@1", '{"failures": "many"}'],
    ["CircuitOpened@1", "no JSON"]
  ])("%s %s is refused by name", (name, data) => {
    const result = fromRecorded({ name, data })
    expect(Result.isFailure(result) && result.failure).toMatchObject({ _tag: "UnreadableFact", name })
  })
})
