/** The endpoints of dossiers, their consents and timelines as data: their requests and answers. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { text } from "../../../application/destinations/fields.ts"
import { activities } from "../../../domain/consent/activity.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, bodyErrors, byId } from "../server/endpoints.ts"
import { idParam, Moment, paging, projectedListOf } from "../server/fields.ts"
import { problemOf } from "../server/problem.ts"

/** The same rule as of a message's `dossierId`. */
export const DossierId = text(256)

export const ConsentRequest = Schema.Struct({
  granted: Schema.Boolean,
  source: text(500).annotate({ description: "Where the answer comes from, such as a form or a call." })
}).annotate({ identifier: "ConsentRequest" })

const answerFields = {
  granted: Schema.Boolean,
  source: Schema.String,
  at: Moment,
  actor: Schema.NullOr(Schema.String)
}

const Consent = Schema.Struct({
  dossierId: Schema.String,
  channel: ChannelName,
  ...answerFields,
  history: Schema.Array(Schema.Struct(answerFields)).annotate({
    description: "The last thousand answers, the newest first."
  })
}).annotate({ identifier: "Consent" })

export const Activity = Schema.Struct({
  id: Schema.String,
  dossierId: Schema.String,
  type: Schema.Literals(activities),
  at: Moment,
  channel: ChannelName,
  messageId: Schema.NullOr(Schema.String),
  actor: Schema.NullOr(Schema.String).annotate({
    description: "operator, key:<id>, or null for Posthaste itself."
  }),
  details: Schema.Record(Schema.String, Schema.Unknown)
}).annotate({ identifier: "Activity" })

const CONSENT = "/dossiers/:id/consents/:channel"
const params = { ...idParam, channel: Schema.String }

const get = HttpApiEndpoint.get("getConsent", CONSENT, {
  params,
  success: Consent,
  error: problemOf(404)
}).annotateMerge(about("What the people behind a dossier last answered for a channel, and every answer before."))

const put = HttpApiEndpoint.put("putConsent", CONSENT, {
  params,
  payload: ConsentRequest,
  success: Consent,
  error: [problemOf(404), ...bodyErrors]
}).annotateMerge(
  about("Record an answer. When it is a withdrawal, messages of the dossier that still wait are cancelled.")
)

const withdraw = HttpApiEndpoint.delete("withdrawConsent", CONSENT, {
  params,
  success: Consent,
  error: problemOf(404)
}).annotateMerge(about("Withdraw a consent that was answered before, with the source api."))

const activity = HttpApiEndpoint.get("activity", "/dossiers/:id/activity", {
  ...byId,
  query: paging,
  success: projectedListOf(Activity)
}).annotateMerge(about("The timeline of a dossier, newest first. Read from a projection: asOf says how far it is."))

export const dossiersApi = HttpApiGroup.make("dossiers")
  .add(get, put, withdraw, activity)
  .middleware(OrgAccess)
  .annotateMerge(
    OpenApi.annotations({ title: "Dossiers", description: "Business cases, by whatever id their system gives them." })
  )
