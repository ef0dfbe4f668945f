/**
 * Puts messages where their facts say, in the queue or out of it. A message whose facts say nothing, because they can't be read or
 * are no history that the law allows, is set aside.
 */
import { Effect, Result } from "effect"
import type { MessageId, OrgId } from "../../domain/ids.ts"
import { placeOf } from "../../domain/message/place.ts"
import { fromRecorded } from "../../domain/message/recorded.ts"
import { streamOf } from "../../domain/streams.ts"
import { Archive } from "../ports/Archive.ts"
import type { LoggedFact } from "../ports/EventStore.ts"
import type { AbandonedMessage } from "../ports/Queue.ts"
import { type Placed, QueueRepair } from "../ports/QueueRepair.ts"
import { SetAside, type Unprocessable } from "../ports/SetAside.ts"
import { type Breach, judgeMessage } from "../store/laws.ts"
import { hasEnded } from "./endAsides.ts"

export interface Mended {
  /** Those that were not where they should be, and are now. */
  readonly mended: ReadonlyArray<MessageId>
  readonly setAside: ReadonlyArray<Unprocessable>
}

export const mendMessages = Effect.fnUntraced(function* (
  ids: ReadonlyArray<MessageId>,
  options: { readonly strays: boolean } = { strays: false }
) {
  const streams = yield* (yield* Archive).streams(ids.map(streamOf))
  const placed: Array<Placed> = []
  const setAside: Array<Unprocessable> = []
  for (const messageId of ids) {
    const facts = streams.get(streamOf(messageId))
    // It was forgotten, or never stored.
    if (facts === undefined) continue
    const judgement = judgeMessage(facts)
    if (Result.isFailure(judgement)) {
      // What has ended needs nobody: to set it aside again would hide that from whoever strikes it off.
      if (!hasEnded(facts)) setAside.push(unprocessable(messageId, facts, judgement.failure))
    } else {
      const { version, position } = facts.at(-1)!
      placed.push({ messageId, version, position, place: placeOf(judgement.success.tracked) })
    }
  }
  yield* (yield* SetAside).put(null, setAside)
  for (const { messageId, reason } of setAside) yield* sayAside(messageId, reason)
  const verdicts = yield* (yield* QueueRepair).mend(placed, options)
  const mended = placed.flatMap(({ messageId }) => (verdicts.get(messageId) === "mended" ? [messageId] : []))
  return { mended, setAside } satisfies Mended
})

/** The line of the log. Its detail may quote data, so the log has none of it: the list of what is set aside does. */
export const sayAside = (messageId: MessageId, reason: Unprocessable["reason"], cause?: unknown) => {
  const text = `message ${messageId} is set aside: it can't be processed`
  return Effect.annotateLogs(cause === undefined ? Effect.logError(text) : Effect.logError(text, cause), {
    messageId,
    reason
  })
}

/** A message on which Posthaste failed. Whether its facts are to blame is found out when it is tried again. */
export const failedOn = (
  { messageId, lane, version }: Pick<AbandonedMessage, "messageId" | "lane" | "version">,
  orgId: OrgId | null,
  defect: unknown
): Unprocessable => ({
  messageId,
  orgId,
  lane,
  version,
  reason: "failed",
  detail: defect instanceof Error ? `${defect.name}: ${defect.message}` : String(defect)
})

/** What can be said of a message whose facts break a law. */
const unprocessable = (
  messageId: MessageId,
  facts: ReadonlyArray<LoggedFact>,
  { rule, version, detail }: Breach
): Unprocessable => {
  const first = fromRecorded(facts[0]!)
  const queued = Result.isSuccess(first) && first.success.type === "MessageQueued" ? first.success : null
  return {
    messageId,
    orgId: queued?.orgId ?? null,
    lane: queued?.destination ?? null,
    reason: rule === "unreadable-fact" ? "unreadable" : "unlawful",
    detail: `version ${version}: ${detail}`,
    version: facts.at(-1)!.version
  }
}
