import fc from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { isDeeperThan, rawMember } from "../../../src/adapters/api/rawJson.ts"

describe("the text of a member", () => {
  it.each([
    ["a number keeps its digits", '{"p":12345678901234567890}', "12345678901234567890"],
    ["a number keeps its trailing zero", '{"p": 1.10 }', "1.10"],
    ["an exponent stays written", '{"p":-1E+2,"q":1}', "-1E+2"],
    ["a string keeps its escapes", '{"p":"\\u00e9\\"\\\\","q":2}', '"\\u00e9\\"\\\\"'],
    ["braces inside strings are text", '{"p":{"a":"}]\\"{"},"q":1}', '{"a":"}]\\"{"}'],
    ["an object keeps its spaces", '{"p": { "a" : [ 1 , 2 ] } }', '{ "a" : [ 1 , 2 ] }'],
    ["an empty list", '{"q":1,"p":[]}', "[]"],
    ["a literal before the end", '{"p":null}', "null"],
    ["the last of two counts", '{"p":1,"p":2}', "2"],
    ["a name may be escaped", '{"\\u0070":3}', "3"],
    ["a nested member of that name is another one", '{"q":{"p":1},"p":2}', "2"],
    ["white space of every kind", '\n\t{\r\n"p"\t:\n 5 \r}', "5"]
  ])("%s", (_, text, raw) => {
    expect(rawMember(text, "p")).toBe(raw)
    expect(JSON.parse(raw)).toEqual(JSON.parse(text).p)
  })

  it.each(['{"q":1}', "{}", "[1]", '"p"', '{"pp":1}'])("is null where there is none: %s", (text) => {
    expect(rawMember(text, "p")).toBeNull()
  })

  it("is the text that was written there, whatever surrounds it", () => {
    const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/)
    const written = fc
      .tuple(fc.json(), fc.integer({ min: 0, max: 3 }))
      .map(([json, indent]) => JSON.stringify(JSON.parse(json), null, indent))
    const member = fc.tuple(
      space,
      fc.string().map((name) => JSON.stringify(`other ${name}`)),
      space,
      space,
      written,
      space
    )
    fc.assert(
      fc.property(fc.array(member), written, fc.array(member), space, (before, raw, after, gap) => {
        const text = `${gap}{${[...before, [gap, '"p"', gap, gap, raw, gap], ...after]
          .map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`)
          .join(",")}}${gap}`
        expect(rawMember(text, "p")).toBe(raw)
      })
    )
  })
})

describe("the depth of a text", () => {
  it("counts lists and objects, and nothing inside strings", () => {
    expect(isDeeperThan('{"a":[[1]]}', 3)).toBe(false)
    expect(isDeeperThan('{"a":[[1]]}', 2)).toBe(true)
    expect(isDeeperThan(`["${"[".repeat(50)}\\"["]`, 1)).toBe(false)
    expect(isDeeperThan("[],[],[]", 1)).toBe(false)
  })

  it("is measured without recursion", () => {
    expect(isDeeperThan("[".repeat(1_000_000), 999_999)).toBe(true)
    expect(rawMember(`{"p":${"[".repeat(200_000)}${"]".repeat(200_000)}}`, "p")).toHaveLength(400_000)
  })
})

describe("a long string", () => {
  const lengths = Array.from({ length: 140 }, (_, n) => n)
  const ends = ["", '\\"', "\\\\", '\\\\\\"', "\\n", '\\"\\"', "[", "\\\\\\\\"]

  it.each(ends)("ends where it ends, whatever is escaped in it and how long it is: %s", (end) => {
    for (const length of lengths) {
      const raw = `"${"[".repeat(length)}${end}${"[".repeat(70)}${end}"`
      const text = `{"a":${raw},"p":${raw},"q":[1]}`
      expect(rawMember(text, "p")).toBe(raw)
      expect([isDeeperThan(text, 2), isDeeperThan(text, 1)]).toEqual([false, true])
      expect(JSON.parse(text).q).toEqual([1])
    }
  })

  it("is not looked at character by character", () => {
    const text = JSON.stringify({ a: "x".repeat(200_000), p: `${"x".repeat(200_000)}"` })
    const looked = vi.spyOn(String.prototype, "charCodeAt")
    const deep = isDeeperThan(text, 1)
    const member = rawMember(text, "p")
    const times = looked.mock.calls.length
    looked.mockRestore()
    expect([deep, member!.length]).toEqual([false, 200_004])
    expect(times).toBeLessThan(2_000)
  })
})
