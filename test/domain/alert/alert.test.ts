import { DateTime } from "effect"
import { describe, expect, it } from "vitest"
import {
  type Alert,
  alertTypes,
  circuitClosed,
  circuitOpened,
  commandRefused,
  conditionAlert,
  deadLetter,
  destinationDisabled,
  destinationEnabled,
  testAlerts
} from "../../../src/domain/alert/alert.ts"
import type { ConditionFact } from "../../../src/domain/condition/facts.ts"
import { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"

const at = DateTime.makeUnsafe("2026-03-01T10:00:00Z")
const id = DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a02")
const target = DestinationId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a03")
const messageId = MessageId.make("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01")
const destination = { id, channel: "webhook", noun: "webhook endpoint", origin: "https://shop.example" } as const
const orgId = OrgId.make("acme")
const about = { orgId, destination, at }
const watched = { orgId, target, at }
const opening = { type: "CircuitOpened", failures: 5, until: at, openings: 1, error: null } as const
const error = { code: "http_410", message: "answered 410", retryable: false }
const since = DateTime.makeUnsafe("2026-03-01T09:00:00Z")
const oldest: ConditionFact = {
  type: "ConditionBegan",
  orgId,
  condition: "oldestDue",
  since,
  messageId,
  limitSeconds: 60
}
const away: ConditionFact = { type: "ConditionBegan", orgId, condition: "broker", since }
const over = (condition: ConditionFact["condition"], by: typeof watched = watched) =>
  conditionAlert(by, { type: "ConditionEnded", orgId, condition }, null)

const every: ReadonlyArray<Alert> = [
  circuitOpened(about, opening),
  circuitClosed(about),
  deadLetter(about, messageId, error),
  destinationDisabled(about, "it answered 410: it is gone"),
  destinationEnabled(about),
  conditionAlert(watched, oldest, destination),
  over("oldestDue"),
  commandRefused(orgId, at, { commandId: messageId, command: "SendMessage", problem: "p", status: 400, detail: "d" }),
  conditionAlert(watched, away, null),
  over("broker"),
  ...testAlerts(watched, "n")
]

describe("every alert", () => {
  it("has a type of its own", () => {
    expect(every.map(({ type }) => type)).toEqual(alertTypes)
  })

  it("has a subject that PagerDuty takes as a key, also in the org with the longest name", () => {
    const longest = OrgId.make("o".repeat(64))
    const alerts = [
      circuitOpened({ ...about, orgId: longest }, opening),
      deadLetter({ ...about, orgId: longest }, messageId, error),
      over("oldestDue", { ...watched, orgId: longest }),
      ...testAlerts({ ...watched, orgId: longest }, messageId)
    ]
    for (const { subject } of alerts) expect(subject.length).toBeLessThanOrEqual(255)
  })

  it.each([
    ["circuit", circuitOpened(about, opening), circuitClosed(about)],
    ["overdue", conditionAlert(watched, oldest, destination), over("oldestDue")],
    ["outage", conditionAlert(watched, away, null), over("broker")],
    ["test", testAlerts(watched, "n")[0]!, testAlerts(watched, "n")[1]!]
  ])("of a %s that is over names the trouble that began", (_, began, ended) => {
    expect([began.action, ended.action]).toEqual(["trigger", "resolve"])
    expect(ended.subject).toBe(began.subject)
  })

  it("of another org, destination, target or test is another trouble", () => {
    const others = [
      ...every,
      circuitOpened({ ...about, orgId: OrgId.make("globex") }, opening),
      circuitOpened({ ...about, destination: { ...destination, id: target } }, opening),
      over("oldestDue", { ...watched, target: id }),
      conditionAlert({ ...watched, target: id }, away, null),
      ...testAlerts(watched, "m")
    ]
    expect(new Set(others.map(({ subject }) => subject)).size).toBe(12)
  })
})

describe("the words of an alert", () => {
  it("say which destination, and why", () => {
    expect(circuitOpened(about, opening).summary).toBe(
      `The circuit of the webhook endpoint ${id} (https://shop.example) opened after 5 failures in a row. Its messages wait.`
    )
    const expired = { code: "token_expired", message: "the access token has expired" }
    const account = {
      ...about,
      destination: { id, channel: "whatsapp", noun: "WhatsApp account", origin: null } as const
    }
    const told = circuitOpened(account, { ...opening, failures: 1, error: expired })
    expect(told.summary).toBe(
      `The circuit of the WhatsApp account ${id} opened after one answer: the access token has expired. Its messages wait.`
    )
    expect(told.details).toEqual({ failures: 1, ...expired })
  })

  it("say which message died or waits, and of what", () => {
    expect(deadLetter(about, messageId, error)).toMatchObject({
      severity: "warning",
      details: { messageId, code: "http_410", message: "answered 410" }
    })
    expect(conditionAlert(watched, oldest, destination).details).toEqual({
      messageId,
      since: "2026-03-01T09:00:00.000Z",
      limitSeconds: 60
    })
    expect(conditionAlert(watched, oldest, null).summary).not.toContain("null")
  })
})
