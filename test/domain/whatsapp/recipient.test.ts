import { describe, expect, it } from "vitest"
import { recipientOf } from "../../../src/domain/whatsapp/recipient.ts"

describe("a recipient", () => {
  it.each([
    ["+4915112345678", "4915112345678"],
    ["49 (151) 123-456.78", "4915112345678"],
    ["12345678", "12345678"],
    ["+123456789012345", "123456789012345"]
  ])("is the digits of its number: %s", (text, digits) => {
    expect(recipientOf(text)).toBe(digits)
  })

  it.each(["", "+", "1234567", "1234567890123456", "015112345678", "++4915112345678", "49151x2345678", "٤٩١٥١١٢٣٤٥"])(
    "is nobody without such a number: %j",
    (text) => {
      expect(recipientOf(text)).toBeNull()
    }
  )
})
