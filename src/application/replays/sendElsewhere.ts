/**
 * Sends dead letters to another destination of their channel: each becomes a new message that names the old one, which
 * is dismissed. The key of the new one is made of replay and old one, so a repeat after a crash makes no second.
 * Messages without body or consent, or that the destination can't take, stay as they are.
 */
import { Effect } from "effect"
import type { DestinationId } from "../../domain/ids.ts"
import { replay } from "../../domain/message/decider.ts"
import { isDead } from "../../domain/message/view.ts"
import { commandMessage } from "../messages/commandMessage.ts"
import { loadStream } from "../messages/readMessage.ts"
import { resendMessage } from "../messages/resendMessage.ts"
import type { DeadItem, ReplayJob } from "../ports/Replays.ts"

export const sendElsewhere = Effect.fnUntraced(function* (
  job: ReplayJob,
  to: DestinationId,
  items: ReadonlyArray<DeadItem>
) {
  const sent = yield* Effect.forEach(items, (item) => sendOne(job, to, item), { concurrency: 8 })
  return sent.filter((isSent) => isSent).length
})

const sendOne = Effect.fnUntraced(
  function* ({ id: replayId, orgId, reason }: ReplayJob, to: DestinationId, { messageId, epoch }: DeadItem) {
    const { facts } = yield* loadStream(orgId, messageId)
    const { status, progress } = replay(facts.map(({ fact }) => fact))
    if (!isDead(status) || progress.epoch !== epoch) return false
    const acceptance = yield* resendMessage(
      orgId,
      messageId,
      { to, body: null, idempotencyKey: `replay ${replayId} of ${messageId}` },
      replayId
    )
    if (acceptance.type !== "Accepted" && acceptance.type !== "AlreadyAccepted") return false
    const why = `sent to ${to} as ${acceptance.message.id}${reason === null ? "" : `: ${reason}`}`
    // A replay at this very moment sends it to both.
    yield* Effect.result(commandMessage(orgId, messageId, "DismissMessage", why))
    return true
  },
  Effect.catchTags({
    MessageNotFound: () => Effect.succeed(false),
    MessageParked: () => Effect.succeed(false),
    BodyErased: () => Effect.succeed(false)
  })
)
