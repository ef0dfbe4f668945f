/**
 * Ends waiting messages whose time is over, whatever holds them back. They need no claim and no permit, so thousands
 * end in one commit, and none takes the probe of a circuit. The projection finds them and the stream of each decides; a
 * worker that holds one meets the ending at the version check.
 */
import { DateTime, Effect, Result } from "effect"
import { decide, replay } from "../../domain/message/decider.ts"
import type { MessageQueued } from "../../domain/message/facts.ts"
import { commandMessages } from "../command.ts"
import { entryOf } from "../entry.ts"
import { MessageViews } from "../ports/MessageViews.ts"
import { type Stored, Telemetry } from "../ports/Telemetry.ts"

const AT_ONCE = 500

export const endMessagesOnce = Effect.fnUntraced(function* () {
  const views = yield* MessageViews
  const now = yield* DateTime.now
  const ended: Array<Stored> = []
  let cursor: string | null = null
  for (;;) {
    const page: Effect.Success<ReturnType<typeof views.ending>> = yield* views.ending(now, { cursor, limit: AT_ONCE })
    const answers = yield* commandMessages(
      page.items.map((messageId) => ({ messageId })),
      ({ messageId }, stream) =>
        Effect.sync(() => {
          if (stream === undefined) return { entry: null, answer: null }
          const message = replay(stream.facts.map(({ fact }) => fact))
          const decided = decide(message, { type: "EndMessage", now })
          // It was sent, ended or replayed since.
          if (Result.isFailure(decided)) return { entry: null, answer: null }
          const facts = decided.success
          const queued = stream.facts[0]!.fact as MessageQueued
          const subject = { messageId, queued, epoch: message.progress.epoch, dueAt: null }
          return { entry: entryOf(messageId, message, stream.version, facts, now).entry, answer: { subject, facts } }
        }),
      { tries: 3 }
      // Those that change all the time are found again by the next look.
    ).pipe(Effect.catchTag("Overtaken", () => Effect.succeed([])))
    ended.push(...answers.flatMap((done) => done ?? []))
    cursor = page.nextCursor
    if (cursor === null) break
  }
  const { stored, storedInBulk } = yield* Telemetry
  if (ended.length > 1) storedInBulk(ended, now)
  else for (const { subject, facts } of ended) stored(subject, facts, now)
  return ended.length
})

export const endMessages = {
  name: "ending messages whose time is over",
  every: "3 seconds",
  step: Effect.suspend(endMessagesOnce)
} as const
