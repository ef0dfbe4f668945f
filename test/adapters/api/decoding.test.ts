/** However much a caller sends, decoding it and saying what is wrong with it stays small. */
import { Result, Schema } from "effect"
import { describe, expect, test } from "vitest"
import { decoderOf, FAULTS_MAX } from "../../../src/adapters/api/decoding.ts"
import { decodeEntry } from "../../../src/adapters/api/messageRequests.ts"
import { invalidFields } from "../../../src/adapters/api/problem.ts"

const message = { channel: "webhook", to: "x", payloadJson: 1 }
const faultsOf = (more: object) =>
  Result.match(decodeEntry({ ...message, ...more }, "messages[0]"), {
    onFailure: (faults) => faults,
    onSuccess: () => []
  })

/** Counts the entries that are looked at. */
const watched = (entries: ReadonlyArray<unknown>) => {
  let looks = 0
  const list = new Proxy(entries, {
    get: (target, key) => {
      if (typeof key === "string" && /^\d+$/.test(key)) looks++
      return Reflect.get(target, key) as unknown
    }
  })
  return { list, looks: () => looks }
}

describe("what is decoded", () => {
  test.each([-1, 1000])("ends at the length of a list that is too long, before its entries (%d)", (entry) => {
    const waitsMs = watched(Array(1_000_000).fill(entry))
    expect(faultsOf({ retry: { strategy: "schedule", waitsMs: waitsMs.list } })).toEqual([
      { field: "messages[0].retry.waitsMs", reason: "must have at most 99 items, not 1000000" }
    ])
    expect(waitsMs.looks()).toBe(0)
  })

  test("ends at the number of a record's entries", () => {
    const metadata = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]))
    expect(faultsOf({ metadata })).toEqual([
      { field: "messages[0].metadata", reason: "must have at most 50 entries, not 100000" }
    ])
  })

  test("ends at the number of a record's entries also where its schema says none", () => {
    const decode = decoderOf(Schema.Struct({ headers: Schema.Record(Schema.String, Schema.String) }))
    const entries = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 1]))
    let looks = 0
    const headers = new Proxy(entries, {
      get: (target, key) => {
        looks++
        return Reflect.get(target, key) as unknown
      }
    })
    expect(decode({ headers })).toEqual(
      Result.fail([{ field: "headers", reason: "must have at most 1000 entries, not 10000" }])
    )
    expect(looks).toBe(0)
  })

  test("ends at the first field that is none where there are thousands, before the fields that are", () => {
    const unknown = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 1]))
    expect(faultsOf({ orderingKey: 1, ...unknown })).toEqual([
      { field: "messages[0].k0", reason: "is not a field of this request" }
    ])
  })

  test("is told in the words of the field what it must be, also where the field may be null", () => {
    expect(faultsOf({ retry: "patient" })).toEqual([
      {
        field: "messages[0].retry",
        reason: expect.stringMatching(/^must be \{"strategy": .* \{"preset": "webhook" \|/)
      }
    ])
  })

  test("is told one reason where a policy is named and written out, beside what else is wrong", () => {
    expect(faultsOf({ retry: { preset: "webhook", strategy: "fixed", colour: 1 }, orderingKey: 1 })).toEqual([
      { field: "messages[0].retry.preset", reason: "names a whole policy: nothing may stand beside it" },
      { field: "messages[0].orderingKey", reason: expect.any(String) }
    ])
  })

  test("ends at the first fault where very many are possible", () => {
    const unknown = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]))
    expect(faultsOf(unknown)).toHaveLength(1)
  })
})

describe("what is said", () => {
  test("names every fault of an ordinary request, whatever the size of its payload", () => {
    const faults = faultsOf({ payloadJson: Array(100_000).fill({ a: 1 }), to: 1, orderingKey: 1, nonsense: 1 })
    expect(faults.map(({ field }) => field).sort()).toEqual(
      ["messages[0].nonsense", "messages[0].orderingKey", "messages[0].to"].sort()
    )
  })

  test("is at most twenty faults of one value", () => {
    expect(faultsOf({ retry: { strategy: "schedule", waitsMs: Array(99).fill(-1) } })).toHaveLength(FAULTS_MAX)
  })

  test("is at most twenty faults of a whole batch", () => {
    const problem = invalidFields(
      Array.from({ length: 20_000 }, (_, index) => ({ field: `m[${index}]`, reason: "is wrong" }))
    )
    expect(problem.body.errors).toHaveLength(FAULTS_MAX)
    expect(problem.body.detail.length).toBeLessThan(1_000)
  })
})

describe("a time that no calendar has", () => {
  const given = { channel: "webhook", to: "x", payloadJson: 1 }
  test.each(["2027-02-30T23:59:00Z", "2027-04-31T00:00:00Z", "2027-01-00T00:00:00Z", "2027-01-01T24:00:00Z"])(
    "is refused: %s",
    (deliverAt) => {
      expect(Result.isFailure(decodeEntry({ ...given, deliverAt }))).toBe(true)
      expect(Result.isSuccess(decodeEntry({ ...given, deliverAt: "2028-02-29T00:00:00Z" }))).toBe(true)
    }
  )
})
