import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { canonicalJson } from "../../src/application/canonicalJson.ts"

describe("two JSON texts", () => {
  it.each([
    ['{"a":1,"b":[true,null]}', ' { "b" : [ true , null ] , "a" : 1 } '],
    ['{"a":{"x":1,"y":2}}', '{"a":{"y":2,"x":1}}'],
    ['"\\u00fc\\/"', '"ü/"'],
    ["[1.10,100,0.001,0]", "[1.1,1e2,10E-4,-0.00e7]"],
    ["12345678901234567890.10", "123456789012345678901e-1"],
    ['{"a":1,"a":2}', '{"a":2}'],
    ["1e1000", "10e999"],
    ['{"__proto__":1,"2":0,"10":0}', '{"10":0,"2":0,"__proto__":1}']
  ])("that mean the same are the same: %s and %s", (one, other) => {
    expect(canonicalJson(one)).toBe(canonicalJson(other))
  })

  it.each([
    ["12345678901234567890", "12345678901234567891"],
    ["1.0000000000000000001", "1"],
    ["-1", "1"],
    ["[1,2]", "[2,1]"],
    ['"1"', "1"],
    ['{"a":null}', "{}"],
    ['{"a":"1e0"}', '{"a":1}'],
    ["1e1000", "1e1001"]
  ])("that mean something else differ: %s and %s", (one, other) => {
    expect(canonicalJson(one)).not.toBe(canonicalJson(other))
  })

  it("are told apart as their values are", () => {
    const shuffled = (value: unknown): unknown =>
      typeof value !== "object" || value === null
        ? value
        : Array.isArray(value)
          ? value.map(shuffled)
          : Object.fromEntries(
              Object.entries(value)
                .toReversed()
                .map(([name, each]) => [name, shuffled(each)])
            )
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(JSON.stringify(shuffled(value), null, 2))).toBe(canonicalJson(JSON.stringify(value)))
      })
    )
  })
})
