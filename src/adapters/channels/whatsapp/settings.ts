/** Settings of a WhatsApp account: a phone number that an org sends from. */
import { Schema } from "effect"
import type { SecretField } from "../../../application/ports/Channels.ts"
import type { DestinationSettings } from "../../../application/ports/Destinations.ts"
import { between, commonSettings, type Setting } from "../../../application/ports/fields.ts"

export interface WhatsAppSettings extends DestinationSettings {
  /** Meta's id; another number is another account. */
  readonly phoneNumberId: string
  /** Such as `v25.0`. */
  readonly graphVersion: string
  /** False: receipts are accepted without proof that they are Meta's. */
  readonly verifySignature: boolean
  /**
   * Treatment of a try that may have been taken: a receipt is awaited for `waitMs`, then a person decides, or it is
   * sent again at the risk of a duplicate.
   */
  readonly reconcile: { readonly waitMs: number; readonly otherwise: "deadLetter" | "resend" }
}

export const settings = {
  phoneNumberId: {
    schema: Schema.String.check(
      Schema.isPattern(/^\d{1,32}$/u, { message: "must be the number's id at Meta, 1 to 32 digits" })
    ).annotate({ description: "Meta's id of the phone number." }),
    // The only id in receipts.
    publicKey: {
      slug: "number-taken",
      title: "There is an account for this phone number",
      detail: "A phone number id belongs to one account. Change that one, or remove it first.",
      reason: "has an account already"
    }
  },
  graphVersion: {
    schema: Schema.String.check(
      Schema.isPattern(/^v[1-9]\d{0,2}\.\d$/u, { message: "must be a version of Meta's Graph API, such as v25.0" })
    ).annotate({ description: "The version of Meta's Graph API." }),
    default: "v25.0"
  },
  verifySignature: {
    schema: Schema.Boolean.annotate({
      description: "false: receipts are believed although nothing proves that they come from Meta. For tests only."
    }),
    default: true
  },
  reconcile: {
    schema: Schema.Struct({
      waitMs: between(1_000, 86_400_000),
      otherwise: Schema.Literals(["deadLetter", "resend"])
    }).annotate({
      description:
        "Of a message that may have been taken: how long a receipt is waited for that shows it, and what happens without one. deadLetter: a person decides. resend: it is sent again and may arrive twice."
    }),
    default: { waitMs: 120_000, otherwise: "deadLetter" }
  },
  ...commonSettings,
  rateLimit: { ...commonSettings.rateLimit, default: { limit: 80, periodMs: 1_000 } }
} as const satisfies { readonly [Name in keyof WhatsAppSettings]: Setting }

const schema = Schema.String.check(
  Schema.isPattern(/^[\x21-\x7e]{1,4096}$/u, { message: "must be 1 to 4096 printable ASCII characters without spaces" })
).annotate({ description: "Stored encrypted, never shown." })

export const secrets = {
  accessToken: { schema, replaceable: true },
  /** Meta signs receipts with it. */
  appSecret: { schema, replaceable: true },
  /** Meta presents it when receipts are set up. */
  verifyToken: { schema, replaceable: true, lookup: true }
} as const satisfies Record<string, SecretField>
