/** An alert as a webhook: `{type, timestamp, data}`. */
import { DateTime } from "effect"
import type { AlertFormat } from "../../../application/ports/AlertFormats.ts"
import { type AlertedDestination, alertTypes } from "../../../domain/alert/alert.ts"

export const format: AlertFormat = {
  channel: "webhook",
  url: null,
  // Takes alerts only, no fanned-out events.
  settingsOf: (url, description) => ({
    url,
    eventTypes: alertTypes,
    description: description ?? "Alerts",
    maxInFlight: 4
  }),
  secret: { field: "secret", name: "secret", check: () => null },
  hasSeverity: false,
  bodyOf: ({ type, at, destination, details, ...alert }, severity) =>
    JSON.stringify({
      type,
      timestamp: DateTime.formatIso(at),
      data: {
        ...alert,
        severity: severity ?? alert.severity,
        destination: destination === null ? null : destinationJson(destination),
        details
      }
    })
}

const destinationJson = ({ id, channel, origin }: AlertedDestination) => ({ id, channel, origin })
