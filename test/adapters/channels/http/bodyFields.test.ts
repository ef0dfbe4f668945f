import { describe, expect, it } from "vitest"
import { withFields } from "../../../../src/adapters/channels/http/fields.ts"

describe("fields that are added to a body", () => {
  it.each([
    ["{}", '{"key":"k"}'],
    [" { } ", '{ "key":"k"}'],
    ['{"n":12345678901234567890,"m":1.10}', '{"n":12345678901234567890,"m":1.10,"key":"k"}'],
    ['{"a":{}}', '{"a":{},"key":"k"}'],
    ['{"a":"}"}\n', '{"a":"}","key":"k"}']
  ])("stand at the end of %s, which stays as it was written", (body, sent) => {
    expect(withFields(body, { key: "k" })).toBe(sent)
    expect(JSON.parse(sent).key).toBe("k")
  })

  it("win over a field of the same name", () => {
    expect(JSON.parse(withFields('{"key":"forged"}', { key: "k" })!).key).toBe("k")
  })

  it("may hold any text", () => {
    expect(JSON.parse(withFields("{}", { 'a"b': 'c"\\\n' })!)).toEqual({ 'a"b': 'c"\\\n' })
  })

  it.each(["[]", "1", '"{}"', "null"])("can't be added to %s", (body) => {
    expect(withFields(body, { key: "k" })).toBeNull()
  })

  it("change nothing where there are none", () => {
    for (const body of [" {} ", "[1]", "1"]) expect(withFields(body, {})).toBe(body)
  })
})
