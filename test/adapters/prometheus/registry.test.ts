import { describe, expect, it } from "vitest"
import { makeRegistry, observe } from "../../../src/adapters/prometheus/registry.ts"

const bounds = [0.1, 1]

describe("the text of metrics", () => {
  it("has counters with their labels, escaped", () => {
    const registry = makeRegistry()
    registry.counter({ name: "posthaste_things_total", help: "Things.", labels: ["kind"] })('a"b\\c\nd').value += 2
    expect(registry.text(false)).toBe(
      '# HELP posthaste_things_total Things.\n# TYPE posthaste_things_total counter\nposthaste_things_total{kind="a\\"b\\\\c\\nd"} 2\n'
    )
  })

  it("names a family of counters without _total in OpenMetrics, and ends with # EOF", () => {
    const registry = makeRegistry()
    registry.counter({ name: "posthaste_things_total", help: "Things." })()
    expect(registry.text(true)).toBe(
      "# HELP posthaste_things Things.\n# TYPE posthaste_things counter\nposthaste_things_total 0\n# EOF\n"
    )
  })

  it("adds up the buckets of a histogram, and shows exemplars in OpenMetrics only", () => {
    const registry = makeRegistry()
    const one = registry.histogram({ name: "posthaste_s", help: "S.", bounds })()
    observe(one, bounds, 0.1)
    observe(one, bounds, 0.5, { traceId: "0af7651916cd43dd8448eb211c80319c", atSeconds: 12.5 })
    observe(one, bounds, 7)
    const lines = [
      'posthaste_s_bucket{le="0.1"} 1',
      'posthaste_s_bucket{le="1"} 2',
      'posthaste_s_bucket{le="+Inf"} 3',
      "posthaste_s_sum 7.6",
      "posthaste_s_count 3"
    ]
    expect(registry.text(false).split("\n").slice(2, -1)).toEqual(lines)
    expect(registry.text(true)).toContain(
      'posthaste_s_bucket{le="1"} 2 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.5 12.500\n'
    )
    expect(registry.text(false)).not.toContain("trace_id")
  })

  it("leaves a family out while nobody has read it", () => {
    const registry = makeRegistry()
    registry.read({ name: "posthaste_old", help: "Old.", kind: "gauge" }, () => [])
    expect(registry.text(false)).not.toContain("posthaste_old")
  })

  it("counts as `other` what would be one series too many", () => {
    const registry = makeRegistry()
    const things = registry.counter({ name: "t_total", help: "T.", labels: ["a", "b"], seriesMax: 3 })
    for (let i = 0; i < 1_000; i++) things(`a${i}`, `b${i}`).value++
    const series = registry
      .text(false)
      .split("\n")
      .filter((line) => line.startsWith("t_total"))
    expect(series).toHaveLength(4)
    expect(series).toContain('t_total{a="other",b="other"} 997')
  })
})
