import { describe, expect, it } from "vitest"
import { timeOf } from "../../src/cli/times.ts"

const now = new Date(2026, 10, 20, 9, 30, 15)
const local = (day: number, hours: number, minutes: number, seconds = 0) =>
  new Date(2026, 10, day, hours, minutes, seconds).toISOString()

describe("a time as people write it", () => {
  it.each([
    ["15:02", local(20, 15, 2)],
    ["yesterday 15:02", local(19, 15, 2)],
    ["tomorrow 7:05:09", local(21, 7, 5, 9)],
    ["2026-11-18 15:02", local(18, 15, 2)],
    ["2h", local(20, 7, 30, 15)],
    ["90s", local(20, 9, 28, 45)],
    ["1.5d", local(18, 21, 30, 15)],
    ["2026-11-18T10:03:36Z", "2026-11-18T10:03:36Z"],
    ["soon", "soon"]
  ])("%s is %s", (text, time) => expect(timeOf(text, now)).toBe(time))

  it("lies ahead where something is to happen", () => expect(timeOf("2h", now, "ahead")).toBe(local(20, 11, 30, 15)))
})
