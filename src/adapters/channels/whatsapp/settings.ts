/** What a WhatsApp account is made of: a phone number of an org that messages go out from. */
import { Schema } from "effect"
import { between, commonSettings, type Setting } from "../../../application/destinations/fields.ts"
import type { SecretField } from "../../../application/ports/Channels.ts"
import type { DestinationSettings } from "../../../application/ports/Destinations.ts"

export interface WhatsAppSettings extends DestinationSettings {
  /** Meta's name of the number. Another number is another account. */
  readonly phoneNumberId: string
  /** Of Meta's Graph API, such as `v25.0`. */
  readonly graphVersion: string
  /** False: receipts are believed although nothing proves that they are Meta's. */
  readonly verifySignature: boolean
  /**
   * What becomes of a try that may have been taken. Meta can't be asked; but a receipt can show it, and is waited for.
   * `otherwise` is what happens without one: left to a person, or sent again at the risk that it arrives twice.
   */
  readonly reconcile: { readonly waitMs: number; readonly otherwise: "deadLetter" | "resend" }
}

export const settings = {
  phoneNumberId: {
    schema: Schema.String.check(
      Schema.isPattern(/^\d{1,32}$/u, { message: "must be the number's id at Meta, 1 to 32 digits" })
    ).annotate({ description: "Meta's id of the phone number." }),
    // Receipts name nothing else.
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
  /** Proves to Meta who we are. */
  accessToken: { schema, replaceable: true },
  /** Meta signs receipts with it. */
  appSecret: { schema, replaceable: true },
  /** By which Meta shows, when receipts are set up, that it means us. */
  verifyToken: { schema, replaceable: true, lookup: true }
} as const satisfies Record<string, SecretField>
