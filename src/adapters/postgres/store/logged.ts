/** A row of the log as the fact it is: what to select, in this order, and how to read it. */
import { DateTime } from "effect"
import type { LoggedFact } from "../../../application/ports/EventStore.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { streamOf } from "../../../domain/streams.ts"

export const loggedColumns =
  "stream_id, stream, version, (extract(epoch from at) * 1000)::bigint, actor, name, data, tx, position"

export const loggedOf = (row: ReadonlyArray<string | null>): LoggedFact => {
  const [id, journal, version, at, actor, name, data, tx, position] = row
  return {
    stream: journal ?? streamOf(id as MessageId),
    messageId: journal == null ? (id as MessageId) : null,
    version: Number(version),
    at: DateTime.makeUnsafe(Number(at)),
    actor: actor ?? null,
    name: name!,
    data: data!,
    position: `${tx}:${position}`
  }
}
