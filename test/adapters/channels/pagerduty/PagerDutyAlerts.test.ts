import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import { format } from "../../../../src/adapters/channels/pagerduty/PagerDutyAlerts.ts"
import type { Alert } from "../../../../src/domain/alert/alert.ts"
import { DestinationId, OrgId } from "../../../../src/domain/ids.ts"

const id = DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")
const alert: Alert = {
  type: "posthaste.circuit.opened",
  action: "trigger",
  severity: "error",
  orgId: OrgId.make("acme"),
  subject: "posthaste/acme/circuit/1",
  at: DateTime.makeUnsafe("2026-03-01T10:00:00.123Z"),
  summary: "The circuit opened.",
  destination: { id, channel: "webhook", noun: "webhook endpoint", origin: "https://shop.example" },
  details: { failures: 5 }
}
const written = (change: Partial<Alert> = {}, severity: Alert["severity"] | null = null) =>
  JSON.parse(format.bodyOf({ ...alert, ...change }, severity))

describe("an event for PagerDuty", () => {
  it("has the fields of its Events API v2, and no routing key", () => {
    expect(written()).toEqual({
      event_action: "trigger",
      dedup_key: "posthaste/acme/circuit/1",
      client: "Posthaste",
      payload: {
        summary: "The circuit opened.",
        source: "https://shop.example",
        severity: "error",
        timestamp: "2026-03-01T10:00:00.123Z",
        component: `webhook ${id}`,
        group: "acme",
        class: "posthaste.circuit.opened",
        custom_details: { failures: 5 }
      }
    })
  })

  it("has a source and a component also when it is about no destination", () => {
    const { payload } = written({ destination: null })
    expect(payload).toMatchObject({ source: "posthaste", component: "posthaste" })
  })

  it("has the target's severity where it has one", () => {
    expect(written({}, "info").payload.severity).toBe("info")
  })

  it("has a summary of at most 1,024 characters, none of them broken", () => {
    for (const summary of ["x".repeat(1_024), "x".repeat(1_025), `x${"😀".repeat(600)}`, "😀".repeat(600)]) {
      const cut = written({ summary }).payload.summary as string
      expect(cut.length).toBeLessThanOrEqual(1_024)
      expect(cut.length).toBeGreaterThan(1_021)
      expect(cut.isWellFormed()).toBe(true)
    }
    expect(written({ summary: "x".repeat(1_024) }).payload.summary).toBe("x".repeat(1_024))
  })
})

describe("the HTTP target of PagerDuty", () => {
  it("puts the key into the body as it is sent, and names it only", () => {
    expect(format.secret).toMatchObject({ field: "routingKey", name: "routing_key" })
    expect(format.settingsOf(format.url!, null)).toMatchObject({
      url: "https://events.pagerduty.com/v2/enqueue",
      bodyFields: { routing_key: "{{routing_key}}" }
    })
  })

  it.each([
    ["e93facc04764012d7bfb002500d5d1a6", true],
    ["e93facc04764012d7bfb002500d5d1a", false],
    ["e93facc04764012d7bfb002500d5d1a66", false],
    ["e93facc04764012d7bfb002500d5d1a ", false],
    ["", false]
  ])("takes %s as a key: %s", (key, isTaken) => {
    const reason = format.secret.check(key)
    expect(reason === null).toBe(isTaken)
    if (reason !== null && key !== "") expect(reason).not.toContain(key)
  })
})
