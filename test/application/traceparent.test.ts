import { describe, expect, it } from "vitest"
import { keptTraceOf, traceContextOf, wellFormed } from "../../src/application/traceparent.ts"

const trace = "0af7651916cd43dd8448eb211c80319c"
const span = "b7ad6b7169203331"

describe("a traceparent", () => {
  it("names a trace, the caller's span, and whether anybody keeps it", () => {
    expect(traceContextOf(`00-${trace}-${span}-01`)).toEqual({ traceId: trace, spanId: span, sampled: true })
    expect(traceContextOf(`00-${trace}-${span}-02`)).toEqual({ traceId: trace, spanId: span, sampled: false })
    expect(keptTraceOf(`00-${trace}-${span}-01`)).toBe(trace)
    expect(keptTraceOf(`00-${trace}-${span}-00`)).toBeNull()
    expect(keptTraceOf(undefined)).toBeNull()
  })

  it("of a later version is read as far as it is known", () => {
    expect(wellFormed(`01-${trace}-${span}-01-more`)).toBe(`00-${trace}-${span}-01`)
  })

  it.each([
    "",
    "garbage",
    `00-${trace}-${span}`,
    `00-${trace}-${span}-01-more`,
    `ff-${trace}-${span}-01`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${trace}-${"0".repeat(16)}-01`,
    `00-${trace.toUpperCase()}-${span}-01`,
    `00-${trace}-${span}-01\r\nx-evil: 1`
  ])("that is malformed counts as absent: %j", (text) => {
    expect(wellFormed(text)).toBeNull()
  })
})
