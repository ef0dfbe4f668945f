import { Context, type Redacted } from "effect"
import type { Alert, Severity } from "../../domain/alert/alert.ts"
import type { ChannelName } from "../../domain/ids.ts"
import type { AlertTargetType } from "./AlertTargets.ts"
import type { HttpTargetSettings, Secrets } from "./HttpTargets.ts"

/** How one kind of alert target wants to be told. */
export interface AlertFormat {
  /** The channel that takes alerts there. */
  readonly channel: ChannelName
  /** The message's body. It is stored, so it holds no secret. */
  readonly bodyOf: (alert: Alert, severity: Severity | null) => string
}

/** A kind whose address is known and whose one secret is a key. */
export interface KeyedAlertFormat extends AlertFormat {
  readonly url: string
  /** Null when the key can be one; the reason never repeats it. */
  readonly checkKey: (key: string) => string | null
  /** The HTTP target that puts the key into requests. */
  readonly targetOf: (url: string) => HttpTargetSettings
  readonly secretsOf: (key: Redacted.Redacted) => Secrets
}

/** Every kind of alert target. */
export class AlertFormats extends Context.Service<
  AlertFormats,
  { readonly [Type in AlertTargetType]: Type extends "webhook" ? AlertFormat : KeyedAlertFormat }
>()("posthaste/application/ports/AlertFormats") {}
