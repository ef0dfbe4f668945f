import { describe, expect, it } from "vitest"
import { watchHttp } from "../../../src/adapters/prometheus/Metrics.ts"
import { makeRegistry } from "../../../src/adapters/prometheus/registry.ts"

const watching = () => {
  const registry = makeRegistry()
  const rejected: Array<string> = []
  const answered = watchHttp(registry, { rejected: (via, reason) => rejected.push(`${via} ${reason}`) })
  const seriesOf = (name: string) =>
    registry
      .text(false)
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`))
  return { answered, rejected, seriesOf }
}

describe("answers of the API", () => {
  it("count by the pattern of their route, and all that match none together", () => {
    const { answered, seriesOf } = watching()
    answered("GET /api/v1/outbound/messages/{id}", 200, 0.01)
    answered("GET /api/v1/outbound/messages/{id}", 200, 0.01)
    for (let n = 0; n < 50; n++) answered(null, 404, 0.001)
    expect(seriesOf("posthaste_http_requests_total")).toEqual([
      'posthaste_http_requests_total{route="GET /api/v1/outbound/messages/{id}",status="200"} 2',
      'posthaste_http_requests_total{route="none",status="404"} 50'
    ])
    expect(seriesOf("posthaste_http_request_duration_seconds_count")).toHaveLength(2)
  })

  it("count as refused messages where messages come in, and nowhere else", () => {
    const { answered, rejected } = watching()
    for (const route of ["POST /api/v1/outbound/messages", "POST /api/v1/outbound/messages/batch", "GET /api/v1/audit"])
      for (const status of [200, 401, 404, 413, 415, 429, 503]) answered(route, status, 0.01)
    const once = ["unauthorized", "too_large", "unsupported_media_type", "too_many", "unavailable"]
    expect(rejected).toEqual([...once, ...once].map((reason) => `http ${reason}`))
  })
})
