import { Context } from "effect"
import type { Alert, Severity } from "../../domain/alert/alert.ts"
import type { ChannelName } from "../../domain/ids.ts"
import type { AlertTargetType } from "./Destinations.ts"

/** The form of alerts for one kind of alert target. */
export interface AlertFormat {
  /** The channel that takes alerts there. */
  readonly channel: ChannelName
  /** The usual address. */
  readonly url: string | null
  /** The settings of the target's destination; those left out are the channel's defaults. */
  readonly settingsOf: (url: string, description: string | null) => Readonly<Record<string, unknown>>
  /** The one secret: its field in requests, its name at the destination, and the fault of an invalid value. */
  readonly secret: {
    readonly field: "secret" | "routingKey"
    readonly name: string
    readonly check: (value: string) => string | null
  }
  /** True if a target may set the severity of all its alerts. */
  readonly hasSeverity: boolean
  /** The message's body. It is stored, so it holds no secret. */
  readonly bodyOf: (alert: Alert, severity: Severity | null) => string
}

export class AlertFormats extends Context.Service<AlertFormats, { readonly [Type in AlertTargetType]: AlertFormat }>()(
  "posthaste/application/ports/AlertFormats"
) {}
