/** An alert as a webhook: `{type, timestamp, data}`, signed and sent like every other. */
import { DateTime } from "effect"
import type { AlertFormat } from "../../../application/ports/AlertFormats.ts"

export const format: AlertFormat = {
  channel: "webhook",
  bodyOf: ({ type, at, destination, details, ...alert }, severity) =>
    JSON.stringify({
      type,
      timestamp: DateTime.formatIso(at),
      data: { ...alert, severity: severity ?? alert.severity, destination, details }
    })
}
