/** `facts/` holds one sample of each shape ever stored: added, never edited. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { recorded } from "../../../src/domain/consent/facts.ts"
import { fromRecorded, toRecorded } from "../../../src/domain/consent/recorded.ts"

const folder = join(import.meta.dirname, "facts")
const names = readdirSync(folder).map((file) => file.replace(/\.json$/, ""))
const sample = (name: string): unknown => JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"))
const read = (name: string) => fromRecorded({ name, data: JSON.stringify(sample(name)) })

describe("facts of dossiers", () => {
  it("have a sample of every shape ever written", () => {
    expect(names.toSorted()).toEqual(Object.keys(recorded).toSorted())
  })

  it.each(names)("%s is read, and written as its sample shows it", (name) => {
    const written = toRecorded(Result.getOrThrow(read(name)))
    expect(written.name).toBe(name)
    expect(JSON.parse(written.data)).toEqual(sample(name))
  })

  it.each(names)("%s says whose it is", (name) => {
    expect(sample(name)).toMatchObject({ orgId: "acme" })
  })
})
