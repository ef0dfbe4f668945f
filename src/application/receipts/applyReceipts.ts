/**
 * Applies the stored receipts to their messages: claims due ones under a lease, records each (recordReceipt.ts), those
 * of one message one after the other, and settles them. A receipt without a message waits, longer each time, and is
 * parked in the end: the message's own commit may come later. A crash repeats receipts, which is safe.
 */
import { Duration, Effect, Result } from "effect"
import { backgroundOn } from "../background.ts"
import { type HeldReceipt, ReceiptInbox, type ReceiptResult } from "../ports/ReceiptInbox.ts"
import type { Receipt } from "../ports/WhatsAppReceipts.ts"
import { WhatsAppReceipts } from "../ports/WhatsAppReceipts.ts"
import { recordReceipt } from "./recordReceipt.ts"

const AT_ONCE = 500
const CONCURRENCY = 32
/** Far longer than a batch takes: a slower process repeats some work, which is safe. */
const LEASE = Duration.seconds(30)

/** 1 s, 2 s, 4 s, … up to ten minutes: in all about an hour. */
const WAIT_FIRST_MS = 1_000
const WAIT_MAX_MS = 600_000
export const TRIES_MAX = 14
const WAIT_BUSY_MS = 1_000

const PARKED_FOR = Duration.days(7)
const FORGET_EVERY = Duration.hours(1)

export const applyReceiptsOnce = Effect.fnUntraced(function* () {
  const inbox = yield* ReceiptInbox
  const held = yield* inbox.claim(AT_ONCE, LEASE)
  if (held.length === 0) return 0
  const { receiptOf } = yield* WhatsAppReceipts
  const results: Array<ReceiptResult> = []
  const byMessage = new Map<string, Array<readonly [HeldReceipt, Receipt]>>()
  for (const one of held) {
    const receipt = receiptOf(one.raw)
    if (Result.isFailure(receipt)) {
      yield* Effect.logWarning(`a receipt for WhatsApp account ${one.account} was skipped: ${receipt.failure}`)
      results.push({ type: "Done", id: one.id })
      continue
    }
    const { messageId, providerMessageId } = receipt.success
    const name = messageId ?? providerMessageId ?? ""
    const others = byMessage.get(name)
    if (others === undefined) byMessage.set(name, [[one, receipt.success]])
    else others.push([one, receipt.success])
  }
  const applied = yield* Effect.forEach(
    byMessage.values(),
    (ofOne) => Effect.forEach(ofOne, ([one, receipt]) => apply(one, receipt)),
    { concurrency: CONCURRENCY }
  )
  yield* inbox.settle([...results, ...applied.flat()])
  return held.length
})

const apply = (one: HeldReceipt, receipt: Receipt): Effect.Effect<ReceiptResult, never, Recording> =>
  recordReceipt(one.orgId, receipt).pipe(
    Effect.flatMap((answer): Effect.Effect<ReceiptResult> => {
      if (answer === "unknown") return notFound(one, receipt)
      const done: ReceiptResult = { type: "Done", id: one.id }
      return answer === "foreign"
        ? Effect.as(Effect.logWarning(`${described(one, receipt)} was skipped: its message is another org's`), done)
        : Effect.succeed(done)
    }),
    // Neither failure is about this receipt, so neither counts as a try.
    Effect.catchTags({
      MessageBusy: () => Effect.succeed(later(one, WAIT_BUSY_MS)),
      StoreUnavailable: () => Effect.succeed(later(one, WAIT_BUSY_MS))
    }),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError(`${described(one, receipt)} was parked: it can't be applied`, defect), {
        type: "Parked" as const,
        id: one.id
      })
    )
  )

type Recording = Effect.Services<ReturnType<typeof recordReceipt>>

const later = ({ id, tries }: HeldReceipt, afterMs: number): ReceiptResult => ({ type: "Again", id, tries, afterMs })

const notFound = (one: HeldReceipt, receipt: Receipt): Effect.Effect<ReceiptResult> => {
  const tries = one.tries + 1
  return tries < TRIES_MAX
    ? Effect.succeed(later({ ...one, tries }, Math.min(WAIT_FIRST_MS * 2 ** one.tries, WAIT_MAX_MS)))
    : Effect.as(
        Effect.logWarning(`${described(one, receipt)} was parked: its message is still unknown after ${tries} looks`),
        { type: "Parked", id: one.id }
      )
}

const described = ({ account }: HeldReceipt, { receipt, providerMessageId, messageId }: Receipt) =>
  `the receipt "${receipt}" for ${providerMessageId ?? messageId} from WhatsApp account ${account}`

export const applyReceipts = backgroundOn(
  "receipts",
  "applying receipts",
  Effect.map(Effect.suspend(applyReceiptsOnce), (claimed) => claimed > 0)
)

export const forgetReceipts = {
  name: "forgetting parked receipts",
  every: FORGET_EVERY,
  step: Effect.flatMap(ReceiptInbox, ({ forget }) => forget(PARKED_FOR))
}
