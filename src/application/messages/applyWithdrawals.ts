/**
 * Cancels the messages that wait when their consent is withdrawn; no attempt starts from then on (deliver.ts).
 * `WithdrawalApplied` says that it is complete; until then the withdrawal stays open and is found again after a crash.
 * A message that was being accepted or sent is cancelled before its next attempt.
 */
import { Duration, Effect } from "effect"
import type { ConsentOf } from "../../domain/consent/consent.ts"
import type { MessageId } from "../../domain/ids.ts"
import { replay } from "../../domain/message/decider.ts"
import { backgroundOn } from "../background.ts"
import { CommandedBy } from "../commandedBy.ts"
import { cancelReason, closeWithdrawal, consentOf, openWithdrawal } from "../consents/consents.ts"
import { Journals } from "../ports/Journals.ts"
import { MessageViews } from "../ports/MessageViews.ts"
import { Telemetry, unwatched } from "../ports/Telemetry.ts"
import { commandMessage } from "./commandMessage.ts"
import { loadReadable } from "./listMessages.ts"

const AT_ONCE = 500
const WITHDRAWALS_AT_ONCE = 10
const PAUSE = Duration.seconds(1)

export const cancelWaiting = Effect.fnUntraced(function* (of: ConsentOf) {
  const views = yield* MessageViews
  const reason = cancelReason(of.dossierId, of.channel, "consent withdrawn")
  let cancelled = 0
  let after: MessageId | null = null
  for (;;) {
    const ids: ReadonlyArray<MessageId> = yield* views.ofDossier(of, after, AT_ONCE)
    const waiting = yield* waitingAmong(ids)
    const answers = yield* Effect.forEach(
      waiting,
      (id) =>
        commandMessage(of.orgId, id, "CancelMessage", reason).pipe(
          Effect.provideService(Telemetry, unwatched),
          Effect.as(1),
          // It was sent, ended or forgotten meanwhile; or it is changing, and then its next attempt does not start.
          Effect.catchTags({
            CommandRefused: () => Effect.succeed(0),
            MessageNotFound: () => Effect.succeed(0),
            // Nothing is sent while it is parked, and its next attempt asks for the consent.
            MessageParked: () => Effect.succeed(0),
            MessageBusy: () => Effect.succeed(0)
          })
        ),
      { concurrency: 8 }
    )
    cancelled += answers.reduce((sum, one) => sum + one, 0)
    if (ids.length < AT_ONCE) break
    after = ids.at(-1)!
  }
  if (cancelled > 0)
    yield* Effect.annotateLogs(Effect.logInfo("messages were cancelled: their consent was withdrawn"), {
      ...{ count: cancelled, org: of.orgId, channel: of.channel }
    })
  return cancelled
})

const waitingAmong = (ids: ReadonlyArray<MessageId>) =>
  Effect.map(loadReadable(ids), (streams) =>
    ids.filter((id) => {
      const history = streams.get(id)?.facts ?? []
      return replay(history.map(({ fact }) => fact)).status === "QUEUED"
    })
  )

export const applyWithdrawalsOnce = Effect.fnUntraced(function* () {
  const open = yield* (yield* Journals).openWithdrawals(WITHDRAWALS_AT_ONCE)
  for (const of of open.map(consentOf)) {
    const withdrawal = yield* openWithdrawal(of)
    if (withdrawal === null) continue
    const cancelled = yield* Effect.provideService(cancelWaiting(of), CommandedBy, withdrawal.actor)
    yield* closeWithdrawal(withdrawal, cancelled)
  }
  return open.length
})

/** Any number of processes may run it. */
export const applyWithdrawals = backgroundOn(
  "jobs",
  "applying withdrawals",
  Effect.tap(
    Effect.map(Effect.suspend(applyWithdrawalsOnce), (applied) => applied > 0),
    () => Effect.sleep(PAUSE)
  )
)
