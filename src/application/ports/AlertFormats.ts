import { Context } from "effect"
import type { Alert, Severity } from "../../domain/alert/alert.ts"
import type { ChannelName } from "../../domain/ids.ts"
import type { AlertTargetType } from "./Destinations.ts"

export interface AlertFormat {
  readonly channel: ChannelName
  readonly url: string | null
  readonly settingsOf: (url: string, description: string | null) => Readonly<Record<string, unknown>>
  /** The one secret: its field in requests, its name at the destination, and the fault of an invalid value. */
  readonly secret: {
    readonly field: "secret" | "routingKey"
    readonly name: string
    readonly check: (value: string) => string | null
  }
  readonly hasSeverity: boolean
  /** The message's body. It is stored, so it holds no secret. */
  readonly bodyOf: (alert: Alert, severity: Severity | null) => string
}

export class AlertFormats extends Context.Service<AlertFormats, { readonly [Type in AlertTargetType]: AlertFormat }>()(
  "posthaste/application/ports/AlertFormats"
) {}
