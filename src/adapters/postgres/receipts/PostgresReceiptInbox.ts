/**
 * Receipts in a table of their own; a repeated one is known by its hash. Claims and settlements need not reach the disk: after a crash they
 * are done again.
 */
import { hash } from "node:crypto"
import { Duration, Effect, Layer } from "effect"
import { type HeldReceipt, ReceiptInbox, type ReceiptResult } from "../../../application/ports/ReceiptInbox.ts"
import type { DestinationId, OrgId } from "../../../domain/ids.ts"
import { joined } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"

const addStatement = prepared`insert into receipt_inbox (org_id, account_id, raw, digest, due_at)
    select n.org_id, n.account_id, n.raw, n.digest, clock_timestamp()
    from unnest(string_to_array($1, E'\\x1e'), $2::uuid[], string_to_array($3, E'\\x1e'), $4::bytea[]) n(org_id, account_id, raw, digest)
    on conflict (account_id, digest) do nothing`
const claimStatement = prepared`select id, org_id, account_id, raw, tries from claim_receipts($1, $2) order by id`
const settleStatement = prepared`with done as (
      delete from receipt_inbox where id = any ($1::bigint[])
    ), again as (
      update receipt_inbox r
      set tries = a.tries, due_at = statement_timestamp() + a.after_ms * interval '1 millisecond'
      from unnest($2::bigint[], $3::int[], $4::bigint[]) a(id, tries, after_ms) where r.id = a.id
    )
    update receipt_inbox set parked_at = statement_timestamp() where id = any ($5::bigint[]) and parked_at is null`
const countStatement = prepared`select count(*) filter (where parked_at is null), count(*) filter (where parked_at is not null)
    from receipt_inbox where $1::text is null or org_id = $1`
const forgetStatement = prepared`with gone as (
      delete from receipt_inbox
      where parked_at is not null and parked_at < statement_timestamp() - $1::bigint * interval '1 millisecond' returning 1
    )
    select count(*) from gone`

const heldOf = ([id, orgId, account, raw, tries]: ReadonlyArray<string | null>): HeldReceipt => ({
  id: id!,
  orgId: orgId as OrgId,
  account: account as DestinationId,
  raw: raw!,
  tries: Number(tries)
})

const ofType = <T extends ReceiptResult["type"]>(results: ReadonlyArray<ReceiptResult>, type: T) =>
  results.filter((result): result is Extract<ReceiptResult, { readonly type: T }> => result.type === type)

export const layer = Layer.effect(
  ReceiptInbox,
  Effect.gen(function* () {
    const { durable, derived, reads } = yield* Postgres
    return ReceiptInbox.of({
      add: Effect.fnUntraced(function* (receipts) {
        const values = [
          joined(receipts, ({ orgId }) => orgId),
          receipts.map(({ account }) => account),
          joined(receipts, ({ raw }) => raw),
          receipts.map(({ raw }) => hash("sha256", raw, "buffer"))
        ]
        yield* unavailable(durable.rows(addStatement, values))
      }),
      claim: (limit, lease) =>
        reading(derived.rows(claimStatement, [limit, Duration.toMillis(lease)]), (rows) => rows.map(heldOf)),
      settle: (results) => {
        const again = ofType(results, "Again")
        return unavailable(
          derived.rows(settleStatement, [
            ofType(results, "Done").map(({ id }) => id),
            again.map(({ id }) => id),
            again.map(({ tries }) => tries),
            again.map(({ afterMs }) => afterMs),
            ofType(results, "Parked").map(({ id }) => id)
          ])
        ).pipe(Effect.asVoid)
      },
      count: (orgId) =>
        reading(reads.rows(countStatement, [orgId]), ([row]) => ({
          waiting: Number(row![0]),
          parked: Number(row![1])
        })),
      forget: (parkedFor) =>
        reading(derived.rows(forgetStatement, [Duration.toMillis(parkedFor)]), ([row]) => Number(row![0]))
    })
  })
)
