/** `facts/` holds one sample of each shape ever stored: added, never edited. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { recorded } from "../../../src/domain/overdue/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/overdue/recorded.ts"

const folder = join(import.meta.dirname, "facts")
const names = readdirSync(folder).map((file) => file.replace(/\.json$/, ""))
const sample = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))

describe("facts of overdue backlog", () => {
  it("have a sample of every shape ever written", () => {
    expect(names.toSorted()).toEqual(Object.keys(recorded).toSorted())
  })

  it.each(names)("%s is read, and written as its sample shows it", (name) => {
    const read = fromRecorded({ name, data: JSON.stringify(sample(name)) })
    const written = toRecorded(Result.getOrThrow(read))
    expect(written.name).toBe(name)
    expect(JSON.parse(written.data)).toEqual(sample(name))
  })
})
