import { describe, expect, it } from "vitest"
import { distance, fromNow, table } from "../../src/cli/terminal.ts"

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
