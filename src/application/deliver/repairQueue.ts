/**
 * Looks for messages that are not where their facts put them, and puts them there: whatever a crash, a restored backup or a bug
 * did to the queue, a running service finds and mends it within minutes. One process does it at a time, in bounded stretches.
 *
 *   set aside  a message whose time has come is tried again: its facts say where it belongs
 *   over       one that somebody has processed since it was set aside is so no longer
 *   messages   one that has not ended, as the list knows it, is in a lane, in a line, in a batch or set aside
 *   lines      the head of each is given to the queue
 *   lanes      none sleeps past its first message
 *
 * A message that moves is never taken for lost: the store answers of one moment, a message that is missing is looked at again
 * after a while, and only what its facts say at the moment of mending is done. A message that is missing in the list as well is
 * found by `streams verify --repair` alone.
 */
import { Clock, Duration, Effect } from "effect"
import type { MessageId } from "../../domain/ids.ts"
import { background } from "../background.ts"
import { QueueRepair } from "../ports/QueueRepair.ts"
import { SetAside } from "../ports/SetAside.ts"
import { Telemetry } from "../ports/Telemetry.ts"
import { endAsides } from "./endAsides.ts"
import { mendMessages } from "./mendMessages.ts"

export interface RepairSettings {
  /** Names this process among those that could repair. */
  readonly holder: string
  /** From one stretch to the next. */
  readonly pause: Duration.Duration
  /** From the end of a pass over all to the next. */
  readonly rest: Duration.Duration
  /** How long a message must be missing before it counts as lost. */
  readonly missingFor: Duration.Duration
}

export const repairDefaults: Omit<RepairSettings, "holder"> = {
  pause: Duration.seconds(1),
  rest: Duration.minutes(2),
  missingFor: Duration.seconds(30)
}

/** A pass over a million messages that wait takes some 200 stretches, of 20 ms of the store's CPU each. */
const MESSAGES_AT_ONCE = 5_000
const LINES_AT_ONCE = 1_000
const MENDED_AT_ONCE = 200
/** The streams of all of them are read. */
const ASIDES_AT_ONCE = 200
/** More that are missing at once are not looked for: the list is far behind then, and most of them have ended. */
const MISSING_MAX = 10_000
/** Longer than any stretch and its pause. */
const TURN = Duration.minutes(1)

/** Where a pass is. Each part begins again with the next pass. */
interface Pass {
  asides: MessageId | null | "done"
  messages: string | null | "done"
  lines: string | null | "done"
  lanes: string | null | "done"
}

const begin = (): Pass => ({ asides: null, messages: null, lines: null, lanes: null })

/** Runs until interrupted. */
export const repairQueue = ({ holder, pause, rest, missingFor }: RepairSettings) => {
  let pass = begin()
  let restUntil = 0
  /** Messages that were missing once, and since when. */
  let missing = new Map<MessageId, number>()

  const stretch = Effect.fnUntraced(function* () {
    const repair = yield* QueueRepair
    const now = Number((yield* Clock.Clock).monotonicTimeNanosUnsafe() / 1_000_000n)
    if (!(yield* repair.takeTurn(holder, Duration.sum(TURN, pause)))) {
      pass = begin()
      missing = new Map()
      return
    }
    yield* mend(yield* (yield* SetAside).due(MENDED_AT_ONCE), true)
    yield* lookAgain(now)
    if (now < restUntil) return
    if (pass.asides !== "done") pass.asides = (yield* endAsides(pass.asides, ASIDES_AT_ONCE)) ?? "done"
    if (pass.messages !== "done" && missing.size < MISSING_MAX) {
      const { ids, next } = yield* repair.lost(pass.messages, MESSAGES_AT_ONCE)
      for (const id of ids) if (!missing.has(id)) missing.set(id, now)
      pass.messages = next ?? "done"
    }
    if (pass.lines !== "done") {
      const { mended, next } = yield* repair.mendLines(pass.lines, LINES_AT_ONCE)
      yield* say("line", mended)
      pass.lines = next ?? "done"
    }
    if (pass.lanes !== "done") {
      const { mended, next } = yield* repair.mendLanes(pass.lanes, LINES_AT_ONCE)
      yield* say("lane", mended)
      pass.lanes = next ?? "done"
    }
    if (Object.values(pass).every((part) => part === "done")) {
      pass = begin()
      restUntil = now + Duration.toMillis(rest)
    }
  })

  /** What has been missing for long enough, and is so still. */
  const lookAgain = Effect.fnUntraced(function* (now: number) {
    const since = now - Duration.toMillis(missingFor)
    const suspects = [...missing].filter(([_, at]) => at <= since).slice(0, MENDED_AT_ONCE)
    if (suspects.length === 0) return
    const lost = yield* (yield* QueueRepair).stillLost(suspects.map(([id]) => id))
    yield* mend(lost, false)
    for (const [id] of suspects) missing.delete(id)
  })

  return background("repairing the queue", Effect.andThen(stretch(), Effect.sleep(pause)), pause)
}

const mend = Effect.fnUntraced(function* (ids: ReadonlyArray<MessageId>, wereAside: boolean) {
  if (ids.length === 0) return
  const { mended } = yield* mendMessages(ids)
  if (!wereAside) return yield* say("message", mended.length, mended)
  for (const messageId of mended) {
    yield* Effect.logInfo("a message that was set aside is tried again").pipe(Effect.annotateLogs({ messageId }))
  }
})

const NAMED_MAX = 20

const texts = {
  message: "messages were in no place of the queue and were put back",
  line: "lines whose head nobody had given to the queue go on",
  lane: "lanes that slept past a message were woken"
}

const say = Effect.fnUntraced(function* (kind: keyof typeof texts, count: number, ids: ReadonlyArray<MessageId> = []) {
  if (count === 0) return
  ;(yield* Telemetry).repaired(kind, count)
  const named = ids.length === 0 ? {} : { messageIds: ids.slice(0, NAMED_MAX).join(" ") }
  yield* Effect.logWarning(texts[kind]).pipe(Effect.annotateLogs({ count, ...named }))
})
