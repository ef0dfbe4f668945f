/** The handlers of the audit trail. */
import { Effect, identity, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { headerText, text } from "../../../application/destinations/fields.ts"
import { type AuditFilter, type AuditItem, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import { operations } from "../../../domain/audit/entry.ts"
import { ChannelName, isUuid, MessageId, type OrgId } from "../../../domain/ids.ts"
import { knownChannel } from "../destinations/knownChannel.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, base, ofAllOrgs } from "../server/endpoints.ts"
import { Moment, paging, projectedListOf, Text, Time } from "../server/fields.ts"
import { onePage, type Page, type PageQuery, projectedPageOf } from "../server/listPages.ts"
import { answer } from "../server/problem.ts"

export const AuditEntry = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  at: Moment,
  operation: Schema.Literals(operations),
  subject: Schema.Struct({
    type: Schema.String.annotate({
      description: "message, dossier, endpoint, http-target, whatsapp-account, key, circuit, replay, erasure or access."
    }),
    id: Schema.String
  }),
  actor: Text.annotate({ description: "operator, key:<id>, or null for Posthaste itself." }),
  channel: Schema.NullOr(ChannelName),
  correlationId: Text,
  dossierId: Text,
  details: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "What else its fact says. Never a body, a secret or the value of a setting."
  })
}).annotate({ identifier: "AuditEntry" })

export const auditApi = HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.get("list", "/audit", {
      query: {
        ...paging,
        operation: Schema.optionalKey(Schema.Literals(operations)),
        actor: Schema.optionalKey(text(100)),
        correlationId: Schema.optionalKey(headerText(256)),
        dossierId: Schema.optionalKey(text(256)),
        messageId: Schema.optionalKey(text(64)),
        channel: Schema.optionalKey(ChannelName),
        from: Schema.optionalKey(Time),
        to: Schema.optionalKey(Time)
      },
      success: projectedListOf(AuditEntry)
    })
      .annotateMerge(
        about("audit:read", "What was done and by whom, newest first. Read from a projection: asOf says how far it is.")
      )
      .annotateMerge(ofAllOrgs)
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(OpenApi.annotations({ title: "Audit" }))

type AuditQuery = Omit<AuditFilter, "messageId"> & PageQuery & { readonly messageId?: string }

const list = Effect.fnUntraced(function* ({ limit, cursor, messageId, ...filter }: AuditQuery) {
  yield* knownChannel(filter.channel)
  const { list } = yield* AuditTrail
  const read = (orgId: OrgId, page: Page) => {
    if (messageId === undefined) return list(orgId, filter, page)
    // Nothing was ever done to what can't be a message.
    if (!isUuid(messageId)) return Effect.succeed(onePage<AuditItem>([]))
    return list(orgId, { ...filter, messageId: MessageId.make(messageId) }, page)
  }
  return yield* projectedPageOf("audit", "audit", { limit, cursor }, read, { of: AuditEntry, json: identity })
})

export const layer = HttpApiBuilder.group(base.add(auditApi), "audit", (handlers) =>
  handlers.handle("list", ({ query }) => answer(list(query)))
)
