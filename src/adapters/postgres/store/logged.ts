import { DateTime } from "effect"
import type { LoggedFact } from "../../../application/ports/EventStore.ts"
import type { MessageId } from "../../../domain/ids.ts"
import { streamOf } from "../../../domain/streams.ts"

/** Without forgettable parts. */
const loggedColumns =
  "e.stream_id, e.stream, e.version, (extract(epoch from e.at) * 1000)::bigint, e.actor, e.name, e.data, e.tx, e.position, null"

/** Columns of `logged`. */
export const wholeColumns = loggedColumns
  .replace("e.actor", "coalesce(d.actor, e.actor)")
  .replace(", null", ", case when m.id is null then d.data else m.data end")

/** Facts with forgettable parts: that of a message's first fact is the whole fact in its row. */
export const logged = `event e left join detail d on d.stream_id = e.stream_id and d.version = e.version
    left join message m on m.id = e.stream_id and e.version = 1`

export const loggedOf = (row: ReadonlyArray<string | null>): LoggedFact => {
  const [id, journal, version, at, actor, name, data, tx, position, forgettable] = row
  return {
    stream: journal ?? streamOf(id as MessageId),
    messageId: journal == null ? (id as MessageId) : null,
    version: Number(version),
    at: DateTime.makeUnsafe(Number(at)),
    actor: actor ?? null,
    name: name!,
    data: data!,
    forgettable: forgettable ?? null,
    position: `${tx}:${position}`
  }
}
