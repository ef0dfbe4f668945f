/**
 * Receipts in a table of their own. Taking them in is one statement, however many there are. Claims and settlements need
 * not reach the disk: what a crash takes back is done again.
 *
 * A receipt says who got the message. Where texts are sealed so is it, and beside it stand keyed hashes of all that it says, by which an
 * erasure finds it. What it is known by when it comes again is a hash of the whole, which nobody guesses.
 */
import { hash } from "node:crypto"
import { Duration, Effect, Layer, Result } from "effect"
import {
  type ArrivedReceipt,
  type HeldReceipt,
  ReceiptInbox,
  type ReceiptResult
} from "../../../application/ports/ReceiptInbox.ts"
import type { DestinationId, OrgId } from "../../../domain/ids.ts"
import { joined } from "../literal.ts"
import { Postgres, prepared, reading, unavailable } from "../Postgres.ts"
import { isSealed, SealedTexts, type Texts } from "../SealedTexts.ts"

const addStatement = prepared`insert into receipt_inbox (org_id, account_id, raw, digest, names, due_at)
    select n.org_id, n.account_id, n.raw, n.digest, string_to_array(n.names, ' '), clock_timestamp()
    from unnest(string_to_array($1, E'\\x1e'), $2::uuid[], string_to_array($3, E'\\x1e'), $4::bytea[], $5::text[])
      n(org_id, account_id, raw, digest, names)
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
/** How long one is left alone whose key is not there. */
const SHUT_MS = 600_000
const leaveStatement = prepared`update receipt_inbox set due_at = statement_timestamp() + ${SHUT_MS} * interval '1 millisecond'
    where id = any ($1::bigint[])`
const countStatement = prepared`select count(*) filter (where parked_at is null), count(*) filter (where parked_at is not null)
    from receipt_inbox where $1::text is null or org_id = $1`
const forgetStatement = prepared`with gone as (
      delete from receipt_inbox
      where parked_at is not null and parked_at < statement_timestamp() - $1::bigint * interval '1 millisecond' returning 1
    )
    select count(*) from gone`

/** Every word that a receipt says, and every number in it: what is not JSON is one word. */
const wordsIn = (raw: string): ReadonlyArray<string> => {
  const words = new Set<string>()
  const isRead = Result.isSuccess(
    Result.try(() =>
      JSON.parse(raw, (_, value: unknown) => {
        if (typeof value === "string" || typeof value === "number") words.add(String(value))
        return value
      })
    )
  )
  if (!isRead) words.add(raw)
  return [...words].flatMap((word) => [word, ...(word.match(/\d{6,}/g) ?? [])])
}

const stored = (texts: Texts, { account, raw }: ArrivedReceipt) => {
  const text = texts.seal("receipt", account, raw)
  const isFound = isSealed(text) ? [...new Set(wordsIn(raw).map((word) => texts.hashed(text, word)))].join(" ") : null
  return { text, digest: hash("sha256", raw, "buffer"), names: isFound }
}

/** Null when it does not open. */
const heldOf = (
  texts: Texts,
  [id, orgId, account, stored, tries]: ReadonlyArray<string | null>
): HeldReceipt | null => {
  const raw = Result.try(() => texts.open(stored!, { receipt: account! }))
  if (Result.isFailure(raw)) return null
  return {
    id: id!,
    orgId: orgId as OrgId,
    account: account as DestinationId,
    raw: raw.success,
    tries: Number(tries)
  }
}

const ofType = <T extends ReceiptResult["type"]>(results: ReadonlyArray<ReceiptResult>, type: T) =>
  results.filter((result): result is Extract<ReceiptResult, { readonly type: T }> => result.type === type)

export const layer = Layer.effect(
  ReceiptInbox,
  Effect.gen(function* () {
    const { durable, derived, reads } = yield* Postgres
    const texts = yield* SealedTexts
    const adding = texts.writing(addStatement)
    return ReceiptInbox.of({
      add: Effect.fnUntraced(function* (receipts) {
        const rows = receipts.map((receipt) => stored(texts, receipt))
        const values = [
          joined(receipts, ({ orgId }) => orgId),
          receipts.map(({ account }) => account),
          joined(rows, ({ text }) => text),
          rows.map(({ digest }) => digest),
          rows.map(({ names }) => names)
        ]
        yield* unavailable(durable.rows(...adding(values)))
      }),
      claim: Effect.fnUntraced(function* (limit, lease) {
        const rows = yield* unavailable(derived.rows(claimStatement, [limit, Duration.toMillis(lease)]))
        yield* unavailable(texts.prepare(rows.map(([_id, _org, _account, raw]) => raw)))
        const held = rows.map((row) => heldOf(texts, row))
        const shut = rows.flatMap(([id], n) => (held[n] === null ? id! : []))
        if (shut.length > 0) {
          yield* unavailable(derived.rows(leaveStatement, [shut]))
          yield* Effect.logError(
            `${shut.length} receipts wait: they are sealed with a key that is not there, or were changed`
          )
        }
        return held.filter((one) => one !== null)
      }),
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
