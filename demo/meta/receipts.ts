/**
 * Receipts as Meta sends them: status updates in one JSON body, escaped to ASCII, and signed over just those bytes.
 */
import { createHmac } from "node:crypto"

export type ReceiptStatus = "sent" | "delivered" | "read" | "failed"

export interface Update {
  /** Meta's id of the message. */
  readonly id: string
  readonly status: ReceiptStatus
  readonly to: string
  readonly callbackData: string | null
  /** Unix seconds. */
  readonly at: number
  /** Of a failure. */
  readonly code?: number
}

/** One body about messages of one phone number. */
export const receiptBody = (
  sender: { readonly phoneNumberId: string; readonly displayPhoneNumber: string },
  updates: ReadonlyArray<Update>
): string =>
  escaped(
    JSON.stringify({
      object: "whatsapp_business_account",
      entry: [
        {
          id: "102290129340398",
          changes: [
            {
              field: "messages",
              value: {
                messaging_product: "whatsapp",
                metadata: {
                  display_phone_number: sender.displayPhoneNumber,
                  phone_number_id: sender.phoneNumberId
                },
                statuses: updates.map(statusOf)
              }
            }
          ]
        }
      ]
    })
  )

const statusOf = ({ id, status, to, callbackData, at, code }: Update) => ({
  id,
  status,
  timestamp: String(at),
  recipient_id: to,
  ...(callbackData === null ? {} : { biz_opaque_callback_data: callbackData }),
  ...(status === "failed"
    ? {
        errors: [
          {
            code: code ?? 131026,
            title: "Message undeliverable",
            message: "Message undeliverable",
            error_data: { details: "Message Undeliverable." }
          }
        ]
      }
    : { pricing: { billable: true, pricing_model: "PMP", category: "utility", type: "regular" } })
})

/** Every character beyond ASCII as `\uXXXX` in lower-case hex, and a slash behind a backslash. */
const escaped = (json: string): string =>
  json
    .replaceAll("/", "\\/")
    .replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** The value of `X-Hub-Signature-256`. */
export const signatureOf = (appSecret: string, body: string): string =>
  `sha256=${createHmac("sha256", appSecret).update(body).digest("hex")}`
