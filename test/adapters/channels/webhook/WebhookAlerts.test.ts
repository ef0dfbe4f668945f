import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { format } from "../../../../src/adapters/channels/webhook/WebhookAlerts.ts"
import { DestinationId, OrgId } from "../../../../src/domain/ids.ts"

describe("an alert as a webhook", () => {
  it("says what happened, when, to whom and how bad it is", () => {
    const destination = {
      id: DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02"),
      channel: "webhook",
      origin: "https://shop.example"
    } as const
    const alert = {
      type: "posthaste.circuit.opened",
      action: "trigger",
      severity: "error",
      orgId: OrgId.make("acme"),
      subject: "posthaste/acme/circuit/1",
      at: DateTime.makeUnsafe("2026-03-01T10:00:00.123Z"),
      summary: "The circuit opened.",
      destination,
      details: { failures: 5 }
    } as const
    const { type, at, ...data } = alert
    const body = { type, timestamp: "2026-03-01T10:00:00.123Z", data }
    expect(
      JSON.parse(format.bodyOf({ ...alert, destination: { ...destination, noun: "webhook endpoint" } }, null))
    ).toEqual(body)
    expect(
      JSON.parse(format.bodyOf({ ...alert, destination: { ...destination, noun: "webhook endpoint" } }, "info"))
    ).toEqual({ ...body, data: { ...data, severity: "info" } })
  })
})
