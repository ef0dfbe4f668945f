/** The handlers of dossiers. A dossier is not created: it exists once a message or a consent of the org names it. */
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { cancelWaiting } from "../../../application/consents/applyWithdrawals.ts"
import { commandConsent, readConsent } from "../../../application/consents/consents.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { type TimelineItem, Timelines } from "../../../application/ports/Timelines.ts"
import type { ConsentOf } from "../../../domain/consent/consent.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { type Page, type PageQuery, projectedPageOf } from "../server/listPages.ts"
import { answer, notFound } from "../server/problem.ts"
import { bodyOf, decoderOf } from "../server/requestBody.ts"
import { Activity, ConsentRequest, DossierId } from "./dossiersApi.ts"

const decodeConsent = decoderOf(ConsentRequest)
const isDossierId = Schema.is(DossierId)

/** A dossier with an impossible name is answered like one that does not exist. */
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
  // Messages that the timeline does not know yet are cancelled by a worker in a moment.
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
  const { list } = yield* Timelines
  const read = Effect.fnUntraced(function* (orgId: OrgId, page: Page) {
    const timeline = yield* list(orgId, dossierId, page)
    return timeline.items.length === 0 && page.cursor === null ? yield* notFound() : timeline
  })
  return yield* projectedPageOf("activity", "activity", query, read, { of: Activity, json: activityJson })
})

export const layer = HttpApiBuilder.group(Api, "dossiers", (handlers) =>
  handlers
    .handle("getConsent", ({ params }) => answer(Effect.flatMap(consentOf(params), shown)))
    .handleRaw("putConsent", ({ request, params }) =>
      answer(Effect.flatMap(consentOf(params), (of) => put(request, of)))
    )
    .handle("withdrawConsent", ({ params }) => answer(Effect.flatMap(consentOf(params), remove)))
    .handle("activity", ({ params, query }) => answer(activity(params.id, query)))
)
