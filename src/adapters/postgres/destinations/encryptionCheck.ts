/**
 * Refuses a start with another encryption key than the one that sealed the secrets of this database. Without it a wrong key would
 * be noticed by the first message of each destination, and would seal new secrets beside the old ones.
 */
import { Effect, Layer, Redacted, Result, Schema } from "effect"
import { Postgres, unavailable, unprepared } from "../Postgres.ts"
import { secretOf } from "./sealedValues.ts"
import { type SealingKey, sealing } from "./sealing.ts"

export class WrongEncryptionKey extends Schema.TaggedError<WrongEncryptionKey>()("WrongEncryptionKey", {
  message: Schema.String
}) {}

const BELONGS_TO = "encryption_check"
const WORD = Redacted.make("posthaste")

const keptStatement = unprepared`select sealed from encryption_check`
const keepStatement = unprepared`insert into encryption_check (sealed) values ($1) on conflict do nothing`
// Of a database that was written before there was a check.
const someSecretStatement = unprepared`select d.org_id, d.id, s.key, s.value from destination d, jsonb_each_text(d.secrets) s limit 1`

const keysOfTextsStatement = unprepared`select exists (select from data_key where sealed_by <> all ($1::text[]))`

const renewStatement = unprepared`update encryption_check set sealed = $1`

/** The newest has sealed everything: the others can go. */
export const sealAnew = Effect.fnUntraced(function* (key: SealingKey) {
  const { durable } = yield* Postgres
  yield* unavailable(durable.rows(renewStatement, [sealing(key).seal(WORD, BELONGS_TO).toString("base64")]))
})

/** Fails unless one of the keys sealed what is there; remembers the newest where nothing is. */
export const check = Effect.fnUntraced(function* (key: SealingKey, older: ReadonlyArray<SealingKey> = []) {
  const { durable } = yield* Postgres
  const { seal, open, ids } = sealing(key, older)
  const opens = (sealed: string, belongsTo: string) =>
    Result.isSuccess(Result.try(() => open(Buffer.from(sealed, "base64"), belongsTo)))
  const [kept] = yield* unavailable(durable.rows(keptStatement, []))
  const [secret] = kept === undefined ? yield* unavailable(durable.rows(someSecretStatement, [])) : []
  const isRight =
    kept !== undefined
      ? opens(kept[0]!, BELONGS_TO)
      : secret === undefined || opens(secret[3]!, secretOf(secret[0]!, secret[1]!, secret[2]!))
  if (!isRight) {
    return yield* new WrongEncryptionKey({
      message:
        "no encryption key that is given sealed the secrets of this database: bring the right POSTHASTE_ENCRYPTION_KEY back, or the file encryption-key; while keys rotate, POSTHASTE_ENCRYPTION_KEYS holds the old one behind the new"
    })
  }
  const [sealedByOthers] = yield* unavailable(durable.rows(keysOfTextsStatement, [ids]))
  if (sealedByOthers![0] === "t") {
    return yield* new WrongEncryptionKey({
      message:
        "bodies of this database are sealed with an encryption key that is not given: put it behind the newest in POSTHASTE_ENCRYPTION_KEYS, and run `posthaste rekey` before you leave it out"
    })
  }
  if (kept !== undefined) return
  yield* unavailable(durable.rows(keepStatement, [seal(WORD, BELONGS_TO).toString("base64")]))
  // Of two first starts with different keys one was faster.
  const [first] = yield* unavailable(durable.rows(keptStatement, []))
  if (!opens(first![0]!, BELONGS_TO)) {
    return yield* new WrongEncryptionKey({
      message: "another process started on this database with another encryption key"
    })
  }
})

export const layer = (key: SealingKey, older: ReadonlyArray<SealingKey> = []) => Layer.effectDiscard(check(key, older))
