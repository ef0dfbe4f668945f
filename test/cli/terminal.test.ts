import { Effect } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { describe, expect, it } from "vitest"
import { distance, fromNow, inLine, paints, printable, table } from "../../src/cli/terminal.ts"

describe("a time away", () => {
  it.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [1_500, "1.5 s"],
    [59_600, "60 s"],
    [3_600_000, "60 min"],
    [7_200_000, "2 h"],
    [-172_800_000, "2 days"]
  ])("%d ms is %s", (ms, words) => {
    expect(distance(ms)).toBe(words)
  })

  it("is ahead or behind", () => {
    expect(fromNow("2026-01-01T00:00:05.000Z", Date.parse("2026-01-01T00:00:00.000Z"))).toBe("in 5.0 s")
    expect(fromNow("2026-01-01T00:00:00.000Z", Date.parse("2026-01-01T00:00:05.000Z"))).toBe("5.0 s ago")
  })
})

describe("a table", () => {
  it("has columns as wide as their widest cell, and no blanks at the end", () => {
    expect(
      table([
        ["a", "bb", ""],
        ["ccc", "d", "e"]
      ])
    ).toBe("a    bb\nccc  d   e")
  })
})

describe("text that strangers wrote", () => {
  const nasty = [
    "\u001b[2J",
    "\u009b31m",
    "\u0085",
    "\u202eDELIVERED",
    "\u2066",
    "\u200f",
    "\u061c",
    "\u2028",
    "\u0000",
    "\r",
    "\t",
    "\u007f"
  ]

  it.each(nasty)("is printed with its control characters as escapes: %j", (text) => {
    const printed = printable(`a${text}b`)
    expect(printed).toMatch(/^a(\\u[0-9a-f]{4})[ -~]*b$/)
    expect(JSON.parse(`"${printed}"`)).toBe(`a${text}b`)
  })

  it("keeps every other letter", () => {
    const text = "Grüße, 東京, שלום, مرحبا, 👩‍👩‍👧 – ok"
    expect(printable(text)).toBe(text)
  })

  it("makes no line and no colour of its own", () => {
    expect(inLine("a\nb")).toBe("a\\u000ab")
    expect(table([["a\nb", "c"]])).toBe("a\\u000ab  c")
    const paint = Effect.runSync(
      Effect.provideService(paints, TerminalCapabilities.TerminalCapabilities, {
        canColor: true
      } as never)
    )
    expect(printable(paint.red("a\u001b[0mb"))).toBe("\u001b[31ma\\u001b[0mb\u001b[0m")
    expect(printable(inLine(paint.red("a\nb")))).toBe("\u001b[31ma\\u000ab\u001b[0m")
  })

  it("is the same JSON as before", () => {
    const value = { [nasty.join("")]: nasty }
    expect(JSON.parse(printable(JSON.stringify(value, null, 2)))).toEqual(value)
  })
})
