/** The audit trail. */
import { Effect, identity, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { type AuditFilter, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import { text } from "../../../application/ports/fields.ts"
import { operations } from "../../../domain/audit/entry.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { OrgAccess } from "../server/auth.ts"
import { about, base, ofAllOrgs, titled } from "../server/endpoints.ts"
import { listOf, Moment, maybe, maybeTime, paging, Text } from "../server/fields.ts"
import { type Page, type PageQuery, pageOf } from "../server/listPages.ts"
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
  details: Schema.Record(Schema.String, Schema.Unknown).annotate({
    description: "What else its fact says. Never a body, a secret or the value of a setting."
  })
}).annotate({ identifier: "AuditEntry" })

export const auditApi = HttpApiGroup.make("audit")
  .add(
    HttpApiEndpoint.get("list", "/audit", {
      query: {
        ...paging,
        operation: maybe(Schema.Literals(operations), "Only this operation."),
        actor: maybe(text(100), "Only what this actor did: operator, or key:<id>."),
        subject: maybe(
          text(300),
          "A stream, such as message-<id> or endpoint-<id>. Of a message all operations are listed, else those with an actor."
        ),
        from: maybeTime("Only what was done at this time or later."),
        to: maybeTime("Only what was done before this time.")
      },
      success: listOf(AuditEntry)
    })
      .annotateMerge(about("audit:read", "What was done and by whom, newest first."))
      .annotateMerge(ofAllOrgs)
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Audit", "Who did what."))

const list = Effect.fnUntraced(function* ({ limit, cursor, ...filter }: AuditFilter & PageQuery) {
  const { list } = yield* AuditTrail
  const read = (orgId: OrgId, page: Page) => list(orgId, filter, page)
  return yield* pageOf("audit", { limit, cursor }, read, { of: AuditEntry, json: identity })
})

export const layer = HttpApiBuilder.group(base.add(auditApi), "audit", (handlers) =>
  handlers.handle("list", ({ query }) => answer(list(query)))
)
