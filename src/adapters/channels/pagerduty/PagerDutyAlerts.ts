/**
 * An alert as an event of PagerDuty's Events API v2. `dedup_key` makes a repeated event harmless and lets the end of a
 * condition resolve its incident. The HTTP target adds the routing key to the body as it sends.
 */
import { DateTime } from "effect"
import type { AlertFormat } from "../../../application/ports/AlertFormats.ts"

const SUMMARY_MAX = 1024
const KEY = "routing_key"

export const format: AlertFormat = {
  channel: "http",
  url: "https://events.pagerduty.com/v2/enqueue",
  settingsOf: (url) => ({ url, bodyFields: { [KEY]: `{{${KEY}}}` }, maxInFlight: 4 }),
  secret: {
    field: "routingKey",
    name: KEY,
    check: (key) => (/^[0-9A-Za-z]{32}$/.test(key) ? null : "must be the 32 letters and digits of an integration key")
  },
  hasSeverity: true,
  bodyOf: ({ type, action, at, orgId, subject, summary, destination, details, ...alert }, severity) =>
    JSON.stringify({
      event_action: action,
      dedup_key: subject,
      client: "Posthaste",
      payload: {
        summary: cut(summary),
        source: destination?.origin ?? "posthaste",
        severity: severity ?? alert.severity,
        timestamp: DateTime.formatIso(at),
        component: destination === null ? "posthaste" : `${destination.channel} ${destination.id}`,
        group: orgId,
        class: type,
        custom_details: details
      }
    })
}

const cut = (text: string): string => {
  if (text.length <= SUMMARY_MAX) return text
  const head = text.slice(0, SUMMARY_MAX - 1)
  return `${head.isWellFormed() ? head : head.slice(0, -1)}…`
}
