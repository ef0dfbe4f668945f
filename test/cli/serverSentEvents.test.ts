import { describe, expect, it } from "vitest"
import { takeEvents } from "../../src/cli/tail.ts"

const text = 'retry: 1000\n: following\nid: a\n\nid: b\ndata: {"n":1}\n\ndata: one\ndata:two\n\n: alive\n\n'
const events = [
  { id: "a", data: null },
  { id: "b", data: '{"n":1}' },
  { id: null, data: "one\ntwo" },
  { id: null, data: null }
]

describe("server-sent events", () => {
  it("are the same wherever the text was cut", () => {
    for (let cut = 0; cut <= text.length; cut++) {
      const [first, rest] = takeEvents(text.slice(0, cut))
      const [second, left] = takeEvents(rest + text.slice(cut))
      expect([...first, ...second]).toEqual(events)
      expect(left).toBe("")
    }
  })

  it("wait for their blank line", () => {
    expect(takeEvents("id: a\ndata: 1\n")).toEqual([[], "id: a\ndata: 1\n"])
  })
})
