/** The resource of dossiers. A dossier is not created: it exists once a message or a consent of the org names it. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { commandConsent, consentJournals, readConsent } from "../../../application/consents/consents.ts"
import { cancelWaiting } from "../../../application/messages/applyWithdrawals.ts"
import { AuditTrail, type TimelineItem } from "../../../application/ports/AuditTrail.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { text } from "../../../application/ports/fields.ts"
import { activities } from "../../../domain/consent/activity.ts"
import type { ConsentOf } from "../../../domain/consent/consent.ts"
import { ChannelName, type OrgId } from "../../../domain/ids.ts"
import { ActingOrg, OrgAccess } from "../server/auth.ts"
import { about, base, bodyErrors, byId, titled } from "../server/endpoints.ts"
import { idParam, listOf, Moment, paging } from "../server/fields.ts"
import { type Page, type PageQuery, pageOf } from "../server/listPages.ts"
import { answer, notFound, problemOf } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"

const DossierId = text(256)

export const ConsentRequest = Schema.Struct({
  granted: Schema.Boolean.annotateKey({ description: "Whether there is consent." }),
  source: text(500).annotateKey({ description: "Where the answer comes from, such as a form or a call." })
}).annotate({ identifier: "ConsentRequest", examples: [{ granted: true, source: "form" }] })

const answerFields = { granted: Schema.Boolean, source: Schema.String, at: Moment, actor: Schema.NullOr(Schema.String) }

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
  actor: Schema.NullOr(Schema.String).annotate({ description: "operator, key:<id>, or null for Posthaste itself." }),
  details: Schema.Record(Schema.String, Schema.Unknown)
}).annotate({ identifier: "Activity" })

const CONSENT = "/dossiers/:id/consents/:channel"

const params = { ...idParam, channel: Schema.String.annotateKey({ description: "The channel, such as whatsapp." }) }

export const dossiersApi = HttpApiGroup.make("dossiers")
  .add(
    HttpApiEndpoint.get("getConsent", CONSENT, { params, success: Consent, error: problemOf(404) }).annotateMerge(
      about("messages:read", "What the people behind a dossier last answered for a channel, and every answer before.")
    ),
    HttpApiEndpoint.put("putConsent", CONSENT, {
      params,
      payload: ConsentRequest,
      success: Consent,
      error: [problemOf(404), ...bodyErrors]
    }).annotateMerge(
      about(
        "consents:write",
        "Record an answer. When it is a withdrawal, messages of the dossier that still wait are cancelled."
      )
    ),
    HttpApiEndpoint.delete("withdrawConsent", CONSENT, {
      params,
      success: Consent,
      error: problemOf(404)
    }).annotateMerge(about("consents:write", "Withdraw a consent that was answered before, with the source api.")),
    HttpApiEndpoint.get("activity", "/dossiers/:id/activity", {
      ...byId,
      query: paging,
      success: listOf(Activity)
    }).annotateMerge(about("messages:read", "The timeline of a dossier, newest first."))
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Dossiers", "Business cases, by whatever id their system gives them."))

const decodeConsent = decoderOf(ConsentRequest)

const isDossierId = Schema.is(DossierId)

/** Answers an impossible name like an absent dossier. */
const consentOf = Effect.fnUntraced(function* ({ id, channel }: { readonly id: string; readonly channel: string }) {
  const orgId = yield* ActingOrg
  const channels = yield* Channels
  const of: ConsentOf | null = isDossierId(id) && channels.has(channel) ? { orgId, dossierId: id, channel } : null
  return of ?? (yield* notFound())
})

const shown = Effect.fnUntraced(function* (of: ConsentOf) {
  const { dossierId, channel, answers } = yield* readConsent(of)
  const history = answers.toReversed()
  return history[0] === undefined ? yield* notFound() : { dossierId, channel, ...history[0], history }
})

const withdraw = Effect.fnUntraced(function* (of: ConsentOf, source: string) {
  yield* commandConsent(of, { type: "WithdrawConsent", source })
  yield* cancelWaiting(of)
})

const put = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, of: ConsentOf) {
  const { granted, source } = yield* bodyOf(request, decodeConsent)
  yield* granted ? commandConsent(of, { type: "GrantConsent", source }) : withdraw(of, source)
  return yield* shown(of)
})

const remove = Effect.fnUntraced(function* (of: ConsentOf) {
  // A consent without an answer can't be withdrawn.
  const { granted } = yield* shown(of)
  if (granted) yield* withdraw(of, "api")
  return yield* shown(of)
})

const activityJson = ({ activity, ...item }: TimelineItem) => ({ ...item, type: activity })

const activity = Effect.fnUntraced(function* (dossierId: string, query: PageQuery) {
  if (!isDossierId(dossierId)) return yield* notFound()
  const { timeline } = yield* AuditTrail
  const read = Effect.fnUntraced(function* (orgId: OrgId, page: Page) {
    const found = yield* timeline(orgId, dossierId, yield* consentJournals(orgId, dossierId), page)
    return found.items.length === 0 && page.cursor === null ? yield* notFound() : found
  })
  return yield* pageOf("activity", query, read, { of: Activity, json: activityJson })
})

export const layer = HttpApiBuilder.group(base.add(dossiersApi), "dossiers", (handlers) =>
  handlers
    .handle("getConsent", ({ params }) => answer(Effect.flatMap(consentOf(params), shown)))
    .handleRaw("putConsent", ({ request, params }) =>
      answer(Effect.flatMap(consentOf(params), (of) => put(request, of)))
    )
    .handle("withdrawConsent", ({ params }) => answer(Effect.flatMap(consentOf(params), remove)))
    .handle("activity", ({ params, query }) => answer(activity(params.id, query)))
)
