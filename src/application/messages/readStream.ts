/**
 * The stored facts of any stream, for its own org, page by page; a cursor is the version of the last one. A stream of
 * another org is not found.
 */
import { type DateTime, Effect } from "effect"
import { isUuid, MessageId, type OrgId } from "../../domain/ids.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import { type RecordedFact, wholeOf } from "../../domain/recorded.ts"
import { halvesOf } from "../../domain/streams.ts"
import { LogReader } from "../log/LogReader.ts"
import type { EventStore } from "../ports/EventStore.ts"
import { PAGE_READ_BYTES, type Page, type PageRequest, type StoreUnavailable } from "../ports/errors.ts"
import { type JournalName, Journals } from "../ports/Journals.ts"
import type { Parked } from "../ports/Parked.ts"
import { loadStream, MessageNotFound, type MessageParked } from "./readMessage.ts"

/** `data` is whole. */
export interface StreamFact extends RecordedFact {
  readonly version: number
  readonly at: DateTime.Utc
}

type Missing = MessageNotFound | MessageParked | StoreUnavailable

export const readStream = Effect.fnUntraced(function* (
  orgId: OrgId,
  stream: string,
  { cursor, limit }: PageRequest
): Effect.fn.Return<Page<StreamFact>, Missing, EventStore | Journals | LogReader | Parked> {
  const after = cursor === null ? 0 : Number(cursor)
  const [kind, id] = halvesOf(stream)
  if (kind === "message") {
    if (!isUuid(id)) return yield* new MessageNotFound({ id })
    const { facts } = yield* loadStream(orgId, MessageId.make(id))
    const part = facts.slice(after, after + limit + 1)
    return pageOf(
      part.map(({ version, at, fact }) => shown({ version, at, ...toRecorded(fact) })),
      limit
    )
  }
  const { load } = yield* Journals
  const [first] = yield* load(stream as JournalName, { after: 0, limit: 1 })
  if (first === undefined) return yield* new MessageNotFound({ id: stream })
  const orgs = yield* (yield* LogReader).orgs([{ stream, messageId: null, version: 1, data: first.data }])
  if (orgs.get(stream) !== orgId) return yield* new MessageNotFound({ id: stream })
  const facts: Array<StreamFact> = []
  for (let bytes = 0, last = after; facts.length <= limit; ) {
    const asked = Math.min(AT_ONCE, limit + 1 - facts.length)
    const some = yield* load(stream as JournalName, { after: last, limit: asked })
    facts.push(...some.map(shown))
    if (some.length < asked) return pageOf(facts, limit)
    bytes += some.reduce((sum, { data }) => sum + data.length, 0)
    last = some.at(-1)!.version
    if (bytes >= PAGE_READ_BYTES) return { items: facts, nextCursor: String(last) }
  }
  return pageOf(facts, limit)
})

const shown = ({ version, at, ...recorded }: StreamFact): StreamFact => ({
  ...{ version, at, name: recorded.name },
  data: wholeOf(recorded)
})

const AT_ONCE = 100

const pageOf = (facts: ReadonlyArray<StreamFact>, limit: number): Page<StreamFact> => {
  const items = facts.slice(0, limit)
  return { items, nextCursor: facts.length > limit ? String(items.at(-1)!.version) : null }
}
