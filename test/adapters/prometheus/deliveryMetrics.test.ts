import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { reasonOf, watchDeliveries } from "../../../src/adapters/prometheus/deliveryMetrics.ts"
import { makeRegistry } from "../../../src/adapters/prometheus/registry.ts"
import type { Subject } from "../../../src/application/ports/Telemetry.ts"
import { presets } from "../../../src/domain/delivery/retry.ts"
import type { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"

const at = (ms: number) => DateTime.makeUnsafe(ms)
const destination = "11111111-1111-4111-8111-111111111111" as DestinationId
const error = { code: "http_503", message: "answered 503", retryable: true }

const subject: Subject = {
  messageId: "01890a5d-ac96-774b-bcce-b302099a8057" as MessageId,
  epoch: 1,
  dueAt: at(1_000),
  queued: {
    type: "MessageQueued",
    orgId: "acme" as OrgId,
    channel: "webhook",
    to: destination,
    destination,
    eventType: null,
    templateCode: null,
    dossierId: null,
    orderingKey: null,
    correlationId: null,
    metadata: null,
    retry: presets.webhook,
    acceptedAt: at(0),
    dueAt: at(0),
    expiresAt: null,
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  }
}

/** The lines that count something, without those of buckets. */
const counted = (facts: ReadonlyArray<MessageFact>, listed: ReadonlyArray<string> = [], openMetrics = false) => {
  const registry = makeRegistry()
  const watcher = watchDeliveries(registry, new Set(listed), (traceparent) => traceparent?.slice(3, 35) ?? null)
  watcher.stored(subject, facts, at(1_250))
  return registry
    .text(openMetrics)
    .split("\n")
    .filter((line) => !line.startsWith("#") && line !== "" && !line.endsWith(" 0") && !/_bucket/.test(line))
}

describe("facts that were stored", () => {
  it("count a delivery, how long it took, and how late it was", () => {
    expect(
      counted([
        { type: "AttemptSucceeded", attempt: 1, status: 200, providerMessageId: null, durationMs: 40 },
        { type: "MessageDelivered", proof: "response" }
      ])
    ).toEqual([
      'posthaste_attempt_duration_seconds_sum{channel="webhook"} 0.04',
      'posthaste_attempt_duration_seconds_count{channel="webhook"} 1',
      'posthaste_attempts_total{channel="webhook",outcome="succeeded",reason=""} 1',
      'posthaste_delivery_latency_seconds_sum{channel="webhook"} 0.25',
      'posthaste_delivery_latency_seconds_count{channel="webhook"} 1'
    ])
  })

  it("count a retry by the attempt that failed, and the last failure as none", () => {
    const failed = (attempt: number, retryAt: DateTime.Utc | null): MessageFact => ({
      type: "AttemptFailed",
      attempt,
      error,
      status: 503,
      durationMs: 5,
      retryAt
    })
    const lines = counted([
      failed(2, at(9_000)),
      failed(11, at(9_000)),
      failed(12, null),
      { type: "MessageDeadLettered", reason: "attempts used up", error }
    ])
    expect(lines.filter((line) => /retries|dead/.test(line))).toEqual([
      'posthaste_dead_letters_total{channel="webhook",reason="attempts_used_up"} 1',
      'posthaste_retries_total{channel="webhook",attempt="2"} 1',
      'posthaste_retries_total{channel="webhook",attempt="over_10"} 1'
    ])
    expect(lines).toContain('posthaste_attempts_total{channel="webhook",outcome="failed",reason="http_503"} 3')
  })

  it("count what was put off, abandoned, refused and reported", () => {
    expect(
      counted([
        { type: "AttemptDeferred", attempt: 1, error, status: 429, durationMs: 5, dueAt: at(9_000) },
        { type: "AttemptAbandoned", attempt: 1, reason: "the worker went away", retryAt: at(9_000) },
        { type: "MessageFailed", by: "receipt", error },
        {
          ...{ type: "ReceiptRecorded", receipt: "failed", providerMessageId: null, epoch: 1, attempt: 1 },
          ...{ reportedAt: at(0), error: null, contradicts: false }
        } as MessageFact
      ]).filter((line) => !line.includes("duration"))
    ).toEqual([
      'posthaste_attempts_total{channel="webhook",outcome="deferred",reason="http_503"} 1',
      'posthaste_attempts_total{channel="webhook",outcome="abandoned",reason=""} 1',
      'posthaste_dead_letters_total{channel="webhook",reason="refused_by_receipt"} 1',
      'posthaste_deferrals_total{channel="webhook",reason="http_503"} 1',
      'posthaste_receipts_total{status="failed"} 1',
      'posthaste_retries_total{channel="webhook",attempt="1"} 1'
    ])
  })

  it("name a destination only when the operator lists it", () => {
    const facts: ReadonlyArray<MessageFact> = [
      { type: "AttemptSucceeded", attempt: 1, status: 200, providerMessageId: null, durationMs: 40 }
    ]
    expect(counted(facts).filter((line) => line.includes(destination))).toEqual([])
    expect(counted(facts, [destination])).toContain(
      `posthaste_destination_attempts_total{destination="${destination}",outcome="succeeded"} 1`
    )
  })

  it("mark a bucket with the trace of the message", () => {
    const registry = makeRegistry()
    const watcher = watchDeliveries(registry, new Set(), (traceparent) => traceparent?.slice(3, 35) ?? null)
    watcher.stored(subject, [{ type: "MessageDelivered", proof: "response" }], at(1_250))
    expect(registry.text(true)).toContain('# {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.25 1.250')
  })
})

describe("the reason of an attempt, as a label", () => {
  it.each([
    ["http_503", "http_503"],
    ["http_418", "http_4xx"],
    ["http_599", "http_5xx"],
    ["timeout", "timeout"],
    ["whatsapp_131026", "whatsapp_131026"],
    ["https://secret.example/path", "other"],
    ["x".repeat(80), "other"]
  ])("of %s is %s", (code, reason) => {
    expect(reasonOf({ code })).toBe(reason)
  })
})
