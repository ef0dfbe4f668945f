/** The handlers of the audit trail. */
import { Effect, identity } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type AuditFilter, type AuditItem, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import { isUuid, MessageId, type OrgId } from "../../../domain/ids.ts"
import { knownChannel } from "../destinations/knownChannel.ts"
import { Api } from "../server/Api.ts"
import { onePage, type Page, type PageQuery, projectedPageOf } from "../server/listPages.ts"
import { answer } from "../server/problem.ts"
import { AuditEntry } from "./auditApi.ts"

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

export const layer = HttpApiBuilder.group(Api, "audit", (handlers) =>
  handlers.handle("list", ({ query }) => answer(list(query)))
)
