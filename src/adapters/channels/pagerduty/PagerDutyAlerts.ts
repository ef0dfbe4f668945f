/**
 * An alert as an event of PagerDuty's Events API v2. What ends a trouble carries the `dedup_key` of what began it,
 * so it resolves that incident; a repeated event with a known key opens no second one, so it may simply be tried again.
 *
 * PagerDuty wants its routing key in the body. What is stored is the body without it: the HTTP target that is made
 * for the alert target adds it as it sends.
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

/** Never in the middle of a character. */
const cut = (text: string): string => {
  if (text.length <= SUMMARY_MAX) return text
  const head = text.slice(0, SUMMARY_MAX - 1)
  return `${head.isWellFormed() ? head : head.slice(0, -1)}…`
}
