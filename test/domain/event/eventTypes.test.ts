import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { fulfils, isEventType, isWish, wishesFulfilledBy } from "../../../src/domain/event/eventTypes.ts"

describe("a type of events", () => {
  it("fulfils itself, each of its beginnings, and the wish for all", () => {
    expect(wishesFulfilledBy("order.paid.late")).toEqual(["order.paid.late", "order.*", "order.paid.*", "*"])
    expect(wishesFulfilledBy("order")).toEqual(["order", "*"])
  })

  it("fulfils no wish for a longer type, nor for one that begins alike without a dot", () => {
    expect(fulfils("order", ["order.*"])).toBe(false)
    expect(fulfils("orders.paid", ["order.*", "order"])).toBe(false)
    expect(fulfils("order.paid", ["order.paid.*"])).toBe(false)
    expect(fulfils("order.paid", [])).toBe(false)
  })

  it("holds no asterisk, and a wish has one only at its end", () => {
    for (const text of ["order.*", "*", "", "a*b"]) expect(isEventType(text)).toBe(false)
    for (const text of ["order", "order.paid", "order.*", "*", "Bestellung bezahlt"]) expect(isWish(text)).toBe(true)
    for (const text of ["", "order*", "*.paid", "order.**", "order.*.paid", ".**"]) expect(isWish(text)).toBe(false)
  })

  const word = fc.stringMatching(/^[a-z]{1,3}$/)
  const type = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join("."))

  it("fulfils a wish exactly when the wish reads so", () => {
    fc.assert(
      fc.property(
        type,
        fc.oneof(
          type,
          type.map((beginning) => `${beginning}.*`),
          fc.constant("*")
        ),
        (of, wish) => {
          const reads = wish === "*" || wish === of || (wish.endsWith(".*") && of.startsWith(wish.slice(0, -1)))
          expect(fulfils(of, [wish])).toBe(reads)
        }
      )
    )
  })
})
