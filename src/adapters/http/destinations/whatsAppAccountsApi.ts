/** What can be asked about WhatsApp accounts, and what is answered: the shapes, as data. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OrgAccess } from "../server/auth.ts"
import {
  between,
  destinationDefaults,
  idParam,
  listOf,
  MaxInFlight,
  Moment,
  OnDeadLetter,
  optional,
  paging,
  RateLimit,
  Retry,
  TimeoutMs
} from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

const phoneNumberId = Schema.String.check(
  Schema.isPattern(/^\d{1,32}$/, { message: "must be the number's id at Meta, 1 to 32 digits" })
)
const graphVersion = Schema.String.check(
  Schema.isPattern(/^v[1-9]\d{0,2}\.\d$/, { message: "must be a version of Meta's Graph API, such as v25.0" })
)
const secret = Schema.String.check(
  Schema.isPattern(/^[\x21-\x7e]{1,4096}$/, { message: "must be 1 to 4096 printable ASCII characters without spaces" })
).annotate({ description: "Stored encrypted, never shown." })
const verifySignature = Schema.Boolean.annotate({
  description: "false: receipts are believed although nothing proves that they come from Meta. For tests only."
})
const reconcile = Schema.Struct({
  waitMs: between(1_000, 86_400_000),
  otherwise: Schema.Literals(["deadLetter", "resend"])
}).annotate({
  description:
    "Of a message that may have been taken: how long a receipt is waited for that shows it, and what happens without one. deadLetter: a person decides. resend: it is sent again and may arrive twice."
})

export const defaults = {
  ...destinationDefaults,
  graphVersion: "v25.0",
  rateLimit: { limit: 80, periodMs: 1_000 },
  verifySignature: true,
  reconcile: { waitMs: 120_000, otherwise: "deadLetter" }
} as const

const settings = {
  graphVersion: optional(graphVersion),
  retry: optional(Retry),
  rateLimit: optional(RateLimit),
  maxInFlight: optional(MaxInFlight),
  timeoutMs: optional(TimeoutMs),
  onDeadLetter: optional(OnDeadLetter),
  verifySignature: optional(verifySignature),
  reconcile: optional(reconcile)
}

export const CreateWhatsAppAccount = Schema.Struct({
  phoneNumberId,
  accessToken: secret,
  appSecret: secret,
  verifyToken: secret,
  ...settings
}).annotate({ identifier: "CreateWhatsAppAccount" })

/** What is left out stays as it is; null puts a field back to its default. Secrets have none. */
export const ChangeWhatsAppAccount = Schema.Struct({
  accessToken: Schema.optionalKey(secret),
  appSecret: Schema.optionalKey(secret),
  verifyToken: Schema.optionalKey(secret),
  ...settings
}).annotate({ identifier: "ChangeWhatsAppAccount" })

const WhatsAppAccount = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  phoneNumberId,
  graphVersion,
  retry: Schema.NullOr(Retry),
  rateLimit: RateLimit,
  maxInFlight: Schema.Int,
  timeoutMs: Schema.Int,
  onDeadLetter: OnDeadLetter,
  verifySignature,
  reconcile,
  paused: Schema.Boolean.annotate({ description: "Nothing is sent from it; what is accepted for it waits." }),
  version: Schema.Int,
  createdAt: Moment,
  updatedAt: Moment
}).annotate({ identifier: "WhatsAppAccount" })

const bodyErrors = [problemOf(413), problemOf(415)]
const about = (summary: string) => OpenApi.annotations({ summary })
const PATH = "/whatsapp-accounts"

const create = HttpApiEndpoint.post("create", PATH, {
  payload: CreateWhatsAppAccount,
  success: WhatsAppAccount.pipe(HttpApiSchema.status(201)),
  error: [problemOf(409), ...bodyErrors]
}).annotateMerge(about("Add a WhatsApp account, a phone number to send from. 409 when there is one for the number."))

const list = HttpApiEndpoint.get("list", PATH, { query: paging, success: listOf(WhatsAppAccount) }).annotateMerge(
  about("List the org's WhatsApp accounts.")
)

const get = HttpApiEndpoint.get("get", `${PATH}/:id`, {
  params: idParam,
  success: WhatsAppAccount,
  error: problemOf(404)
}).annotateMerge(about("One WhatsApp account."))

const change = HttpApiEndpoint.patch("change", `${PATH}/:id`, {
  params: idParam,
  payload: ChangeWhatsAppAccount,
  success: WhatsAppAccount,
  error: [problemOf(404), ...bodyErrors]
}).annotateMerge(about("Change a WhatsApp account, or rotate its secrets. Changes apply from the next attempt."))

const remove = HttpApiEndpoint.delete("remove", `${PATH}/:id`, {
  params: idParam,
  success: HttpApiSchema.NoContent,
  error: problemOf(404)
}).annotateMerge(about("Remove a WhatsApp account and its secrets."))

const command = { params: idParam, success: WhatsAppAccount, error: problemOf(404) }
const pause = HttpApiEndpoint.post("pause", `${PATH}/:id/pause`, command).annotateMerge(
  about("Send nothing from a WhatsApp account until it is resumed. Its messages wait.")
)
const resume = HttpApiEndpoint.post("resume", `${PATH}/:id/resume`, command).annotateMerge(
  about("Send from a WhatsApp account again, beginning with what has waited.")
)

export const whatsAppAccountsApi = HttpApiGroup.make("whatsAppAccounts")
  .add(create, list, get, change, remove, pause, resume)
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(OpenApi.annotations({ title: "WhatsApp accounts" }))
