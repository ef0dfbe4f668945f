/** Answers what was done, and by whom. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type AuditFilter, type AuditItem, AuditTrail } from "../../../application/ports/AuditTrail.ts"
import { isUuid, MessageId } from "../../../domain/ids.ts"
import { knownChannel } from "../destinations/knownChannel.ts"
import { moment } from "../messages/messageJson.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { openCursor, sealCursor } from "../server/cursor.ts"
import { LIMIT_DEFAULT } from "../server/fields.ts"
import { answer } from "../server/problem.ts"

const LIST = "audit"

const entryJson = ({ at, ...entry }: AuditItem) => ({ ...entry, at: moment(at) })

const list = Effect.fnUntraced(function* ({
  limit,
  cursor,
  messageId,
  ...filter
}: Omit<AuditFilter, "messageId"> & {
  readonly messageId?: string
  readonly limit?: number
  readonly cursor?: string
}) {
  yield* knownChannel(filter.channel)
  const orgId = yield* ActingOrg
  const page = { limit: limit ?? LIMIT_DEFAULT, cursor: yield* openCursor(LIST, cursor) }
  // Nothing was ever done to what can't be a message.
  if (messageId !== undefined && !isUuid(messageId)) return { items: [], nextCursor: null }
  const wanted = messageId === undefined ? filter : { ...filter, messageId: MessageId.make(messageId) }
  const { items, nextCursor } = yield* (yield* AuditTrail).list(orgId, wanted, page)
  return { items: items.map(entryJson), nextCursor: sealCursor(LIST, nextCursor) }
})

export const layer = HttpApiBuilder.group(Api, "audit", (handlers) =>
  handlers.handle("list", ({ query }) => answer(list(query)))
)
