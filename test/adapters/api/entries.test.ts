/** The entries of a batch are found in its bytes as `JSON.parse` would find them, in steps, whatever the bytes hold. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { findEntries } from "../../../src/adapters/api/entries.ts"

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

const found = (json: string, most = 1_000, bounds: { readonly outsideMax?: number; readonly depth?: number } = {}) => {
  const bytes = new TextEncoder().encode(json)
  const search = findEntries(bytes, { most, outsideMax: 1_000_000, ...bounds })
  let steps = 1
  while (!search.step()) steps++
  const all = search.found()
  if (typeof all === "string") return all
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
    expect(found(`[[1,2],[3]]`)).toMatchObject({ lists: [] })
    expect(found(`{"a":[1,2`)).toBe("EndsInAList")
  })

  it("are counted to the end, and so many of their places remembered", () => {
    expect(found(`{"a":[${"1,".repeat(5_000)}1]}`, 3)).toMatchObject({
      lists: [{ count: 5_001, entries: ["1", "1", "1"] }]
    })
  })

  it("are those of objects that lie deeper, where they are asked for", () => {
    const json = `{"entry":[{"changes":[[[1]],{"statuses":[{"a":[1]},2],"b":3}]},{"changes":[{"statuses":[]}]}],"x":[[[[[1]]]]]}`
    expect(found(json, 9, { depth: 6 })).toEqual({
      outside: `{"entry":[{"changes":[[[1]],{"statuses":[0],"b":3}]},{"changes":[{"statuses":[1]}]}],"x":[[[[[1]]]]]}`,
      lists: [
        { count: 2, entries: [`{"a":[1]}`, "2"] },
        { count: 0, entries: [] }
      ],
      steps: 1
    })
  })

  it("are looked for no further once too much is outside of them, however many lists there are", () => {
    const many = `{${`"":[],`.repeat(1_000_000)}"a":[1]}`
    const search = findEntries(new TextEncoder().encode(many), { most: 1_000, outsideMax: 65_536 })
    expect([search.step(), search.found()]).toEqual([true, "TooMuchOutside"])
    expect(found(`{"a":"${"x".repeat(200)}","b":[1]}`, 9, { outsideMax: 100 })).toBe("TooMuchOutside")
    expect(found(`{"a":[${"1,".repeat(200)}1]}`, 9, { outsideMax: 9 })).toMatchObject({ lists: [{ count: 201 }] })
    expect(found(`{"a":[${"1,".repeat(200)}1]}`, 9, { outsideMax: 8 })).toBe("TooMuchOutside")
  })

  it("are looked for an eighth of a mebibyte at a time", () => {
    const whole = found(`{"a":["${"x,".repeat(400_000)}","\\\\",2]}`)
    expect(whole).toMatchObject({ steps: 7, lists: [{ count: 3 }] })
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
          const parts = typeof all === "string" ? [""] : [all.outside, ...all.lists.flatMap(({ entries }) => entries)]
          expect(parts.every(isJson)).toBe(isJson(whole))
        }
      ),
      { numRuns: 2_000 }
    )
  })
})
