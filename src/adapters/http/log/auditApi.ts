/** The endpoints of the audit trail as data: their requests and answers. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { headerText, text } from "../../../application/destinations/fields.ts"
import { operations } from "../../../domain/audit/entry.ts"
import { ChannelName } from "../../../domain/ids.ts"
import { OrgAccess } from "../server/auth.ts"
import { about } from "../server/endpoints.ts"
import { Moment, paging, projectedListOf, Text, Time } from "../server/fields.ts"

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

const list = HttpApiEndpoint.get("list", "/audit", {
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
}).annotateMerge(about("What was done and by whom, newest first. Read from a projection: asOf says how far it is."))

export const auditApi = HttpApiGroup.make("audit")
  .add(list)
  .middleware(OrgAccess)
  .annotateMerge(OpenApi.annotations({ title: "Audit" }))
