import { describe, expect, it } from "vitest"
import { hashOf } from "../../../../src/adapters/http/keys/apiKey.ts"
import { keyHashOf } from "../../../../src/adapters/http/server/door.ts"

describe("the hash of a request's key", () => {
  it("is made once", () => {
    const request = {}
    const first = keyHashOf(request, "a key")
    expect(first).toEqual(hashOf("a key"))
    expect(keyHashOf(request, "a key")).toBe(first)
  })

  it("is of the key that is asked for, and of no other", () => {
    const request = {}
    expect(keyHashOf(request, "a key")).toEqual(hashOf("a key"))
    expect(keyHashOf(request, "another")).toEqual(hashOf("another"))
    expect(keyHashOf({}, "a key")).toEqual(hashOf("a key"))
  })
})
