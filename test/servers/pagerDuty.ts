/**
 * PagerDuty's Events API v2 as far as it shows: it refuses what it would refuse, and opens and resolves incidents by
 * their `dedup_key`.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

export interface PagerDutyEvent {
  readonly routing_key: string
  readonly event_action: "trigger" | "acknowledge" | "resolve"
  readonly dedup_key: string
  readonly payload: Readonly<Record<string, unknown>>
}

const severities = ["critical", "error", "warning", "info"]
const isText = (value: unknown, max: number) => typeof value === "string" && value.length > 0 && value.length <= max
const isOptional = (value: unknown, isGood: (value: unknown) => boolean) => value === undefined || isGood(value)
const fields = new Set([
  "routing_key",
  "event_action",
  "dedup_key",
  "client",
  "client_url",
  "links",
  "images",
  "payload"
])
const payloadFields = new Set([
  ...["summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"]
])

/** Why PagerDuty would refuse it. */
const errorsOf = (event: Record<string, unknown>): ReadonlyArray<string> => {
  const payload = event["payload"] as Record<string, unknown> | undefined
  const checks: ReadonlyArray<readonly [string, boolean]> = [
    ["Length of 'routing_key' is incorrect (should be 32 characters)", /^\w{32}$/.test(String(event["routing_key"]))],
    ["'event_action' is invalid", ["trigger", "acknowledge", "resolve"].includes(String(event["event_action"]))],
    ["'dedup_key' is invalid", isText(event["dedup_key"], 255)],
    ["'payload' is missing", event["event_action"] !== "trigger" || payload !== undefined],
    ["a field is unknown", [...Object.keys(event)].every((name) => fields.has(name))],
    ...(payload === undefined
      ? []
      : ([
          ["'payload.summary' is invalid", isText(payload["summary"], 1024)],
          ["'payload.source' is invalid", isText(payload["source"], 1024)],
          ["'payload.severity' is invalid", severities.includes(String(payload["severity"]))],
          [
            "'payload.timestamp' is invalid",
            isOptional(payload["timestamp"], (at) => !Number.isNaN(Date.parse(String(at))))
          ],
          [
            "'payload.custom_details' is invalid",
            isOptional(payload["custom_details"], (all) => typeof all === "object")
          ],
          ["a field of the payload is unknown", Object.keys(payload).every((name) => payloadFields.has(name))]
        ] as const))
  ]
  return checks.flatMap(([error, isGood]) => (isGood ? [] : [error]))
}

export const pagerDuty = Effect.acquireRelease(
  Effect.promise(async () => {
    const events: Array<PagerDutyEvent> = []
    const refused: Array<ReadonlyArray<string>> = []
    const open = new Set<string>()
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const event = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Record<string, unknown>
        const isEvent = request.method === "POST" && request.url === "/v2/enqueue"
        const errors = isEvent ? errorsOf(event) : ["not found"]
        if (errors.length > 0) {
          refused.push(errors)
          return response
            .writeHead(400)
            .end(JSON.stringify({ status: "invalid event", message: "Event object is invalid", errors }))
        }
        const accepted = event as unknown as PagerDutyEvent
        events.push(accepted)
        if (accepted.event_action === "trigger") open.add(accepted.dedup_key)
        if (accepted.event_action === "resolve") open.delete(accepted.dedup_key)
        response
          .writeHead(202)
          .end(JSON.stringify({ status: "success", message: "Event processed", dedup_key: accepted.dedup_key }))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v2/enqueue`,
      events,
      refused,
      open,
      server
    }
  }),
  ({ server }) =>
    Effect.promise(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    })
)
