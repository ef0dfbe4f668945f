/**
 * The stored facts of any stream, for its own org. A stream of another org, or of none, is not found, exactly like a
 * stream that does not exist.
 */
import { type DateTime, Effect } from "effect"
import { isUuid, MessageId, type OrgId } from "../../domain/ids.ts"
import { toRecorded } from "../../domain/message/recorded.ts"
import type { RecordedFact } from "../../domain/recorded.ts"
import { halvesOf } from "../../domain/streams.ts"
import type { StoreUnavailable } from "../errors.ts"
import { loadStream, MessageNotFound, type MessageSetAside } from "../messages/readMessage.ts"
import type { EventStore } from "../ports/EventStore.ts"
import { type JournalName, Journals } from "../ports/Journals.ts"
import type { SetAside } from "../ports/SetAside.ts"
import { LogReader } from "./LogReader.ts"

export interface StreamFact extends RecordedFact {
  readonly version: number
  readonly at: DateTime.Utc
}

type Missing = MessageNotFound | MessageSetAside | StoreUnavailable

export const readStream = Effect.fnUntraced(function* (
  orgId: OrgId,
  stream: string
): Effect.fn.Return<ReadonlyArray<StreamFact>, Missing, EventStore | Journals | LogReader | SetAside> {
  const [kind, id] = halvesOf(stream)
  if (kind === "message") {
    if (!isUuid(id)) return yield* new MessageNotFound({ id })
    const { facts } = yield* loadStream(orgId, MessageId.make(id))
    return facts.map(({ version, at, fact }) => ({ version, at, ...toRecorded(fact) }))
  }
  const facts = yield* (yield* Journals).load(stream as JournalName)
  const first = facts[0]
  if (first === undefined) return yield* new MessageNotFound({ id: stream })
  const orgs = yield* (yield* LogReader).orgs([{ stream, messageId: null, version: 1, data: first.data }])
  return orgs.get(stream) === orgId ? facts : yield* new MessageNotFound({ id: stream })
})
