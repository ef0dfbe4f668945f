/** Receipts over a map, by account and words. */
import { DateTime, Duration, Effect, Layer } from "effect"
import { ReceiptInbox } from "../../../src/application/ports/ReceiptInbox.ts"
import { Memory } from "../Memory.ts"

export const layer = Layer.effect(
  ReceiptInbox,
  Effect.gen(function* () {
    const { tables, now } = yield* Memory
    const { receipts } = tables
    const inMillis = (milliseconds: number) => DateTime.add(now(), { milliseconds })
    return ReceiptInbox.of({
      add: (arrived) =>
        Effect.sync(() => {
          for (const receipt of arrived) {
            const id = `${receipt.account} ${receipt.raw}`
            if (!receipts.has(id))
              receipts.set(id, { receipt: { ...receipt, id, tries: 0 }, dueAt: now(), parkedAt: null })
          }
        }),
      claim: (limit, lease) =>
        Effect.sync(() => {
          const due = [...receipts.values()]
            .filter(({ dueAt, parkedAt }) => parkedAt === null && DateTime.isLessThanOrEqualTo(dueAt, now()))
            .toSorted((a, b) => DateTime.Order(a.dueAt, b.dueAt))
            .slice(0, limit)
          for (const row of due) row.dueAt = DateTime.addDuration(now(), lease)
          return due.map(({ receipt }) => receipt)
        }),
      settle: (results) =>
        Effect.sync(() => {
          for (const result of results) {
            const row = receipts.get(result.id)
            if (row === undefined) continue
            if (result.type === "Done") receipts.delete(result.id)
            else if (result.type === "Parked") row.parkedAt ??= now()
            else {
              row.receipt = { ...row.receipt, tries: result.tries }
              row.dueAt = inMillis(result.afterMs)
            }
          }
        }),
      count: (orgId) =>
        Effect.sync(() => {
          const own = [...receipts.values()].filter(({ receipt }) => orgId === null || receipt.orgId === orgId)
          const parked = own.filter(({ parkedAt }) => parkedAt !== null).length
          return { waiting: own.length - parked, parked }
        }),
      forget: (parkedFor) =>
        Effect.sync(() => {
          const before = inMillis(-Duration.toMillis(parkedFor))
          const old = [...receipts].filter(
            ([_, { parkedAt }]) => parkedAt !== null && DateTime.isLessThan(parkedAt, before)
          )
          for (const [id] of old) receipts.delete(id)
          return old.length
        })
    })
  })
)
