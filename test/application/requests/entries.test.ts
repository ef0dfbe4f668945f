/** The entries of a batch are found in its bytes as `JSON.parse` would find them, in steps, whatever the bytes hold. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { findEntries } from "../../../src/application/requests/entries.ts"

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

const found = (json: string, most = 1_000) => {
  const bytes = new TextEncoder().encode(json)
  const search = findEntries(bytes, most)
  let steps = 1
  while (!search.step()) steps++
  const all = search.found()
  if (all === null) return null
  const lists = all.lists.map(({ places, count }) => ({
    count,
    entries: Array.from({ length: places.length / 2 }, (_, n) => text(bytes.subarray(places[2 * n], places[2 * n + 1])))
  }))
  return { outside: text(all.outside), lists, steps }
}

const isJson = (json: string) => {
  try {
    JSON.parse(json)
    return true
  } catch {
    return false
  }
}

describe("the entries of a batch", () => {
  it("are the texts between the commas of a list of the outermost object", () => {
    expect(found(`{"a": [ {"x":[1,2]} , "],\\"," ,3], "b":[ ], "c": {"d":[1,2]}}`)).toEqual({
      outside: `{"a": [0], "b":[1], "c": {"d":[1,2]}}`,
      lists: [
        { count: 3, entries: [` {"x":[1,2]} `, ` "],\\"," `, "3"] },
        { count: 0, entries: [] }
      ],
      steps: 1
    })
    expect(found(`[[1,2],[3]]`)?.lists).toEqual([])
    expect(found(`{"a":[1,2`)).toBe(null)
  })

  it("are counted to the end, and so many of their places remembered", () => {
    expect(found(`{"a":[${"1,".repeat(5_000)}1]}`, 3)?.lists).toEqual([{ count: 5_001, entries: ["1", "1", "1"] }])
  })

  it("are looked for an eighth of a mebibyte at a time", () => {
    const whole = found(`{"a":["${"x,".repeat(400_000)}","\\\\",2]}`)!
    expect(whole.steps).toBe(7)
    expect(whole.lists[0]!.count).toBe(3)
  })

  it("and what is outside of them are JSON exactly when the whole is", () => {
    const json = fc.record({ messages: fc.array(fc.jsonValue(), { maxLength: 5 }), more: fc.jsonValue() })
    const broken = fc
      .tuple(json, fc.nat(), fc.constantFrom(...'[]{},:"\\ 1x'), fc.boolean())
      .map(([value, at, character, spaced]) => {
        const whole = JSON.stringify(value, null, spaced ? 2 : 0)
        const place = at % (whole.length + 1)
        return whole.slice(0, place) + character + whole.slice(place)
      })
    fc.assert(
      fc.property(
        fc.oneof(
          json.map((value) => JSON.stringify(value)),
          broken
        ),
        (whole) => {
          const all = found(whole)
          const parts = all === null ? [] : [all.outside, ...all.lists.flatMap(({ entries }) => entries)]
          expect(all !== null && parts.every(isJson)).toBe(isJson(whole))
        }
      ),
      { numRuns: 2_000 }
    )
  })
})
