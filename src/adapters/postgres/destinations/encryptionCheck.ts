/**
 * Refuses a start with another encryption key than the one that sealed the secrets of this database, which would seal new secrets beside
 * the old ones. The text that it tries to open is random, and is also the key of the ids of lines.
 */
import { createHmac, hash, randomBytes } from "node:crypto"
import { Effect, Layer, Redacted, Result, Schema } from "effect"
import { Fingerprint } from "../../../application/ports/Fingerprint.ts"
import { Postgres, unavailable, unprepared } from "../Postgres.ts"
import { type SealingKey, sealing } from "./sealing.ts"

export class WrongEncryptionKey extends Schema.TaggedError<WrongEncryptionKey>()("WrongEncryptionKey", {
  message: Schema.String
}) {}

const BELONGS_TO = "encryption_check"

const keptStatement = unprepared`select sealed from encryption_check`
const keepStatement = unprepared`insert into encryption_check (sealed) values ($1) on conflict do nothing`
const renewStatement = unprepared`update encryption_check set sealed = $1`

/** Called once the newest key sealed everything else. */
export const sealAnew = Effect.fnUntraced(function* (newest: SealingKey, older: ReadonlyArray<SealingKey>) {
  const { durable } = yield* Postgres
  const text = yield* check(newest, older)
  yield* unavailable(durable.rows(renewStatement, [sealing(newest).seal(text, BELONGS_TO).toString("base64")]))
})

/** Fails unless one of the keys sealed the stored text; the first start draws it. */
export const check = Effect.fnUntraced(function* (key: SealingKey, older: ReadonlyArray<SealingKey> = []) {
  const { durable } = yield* Postgres
  const { seal, open } = sealing(key, older)
  let [kept] = yield* unavailable(durable.rows(keptStatement, []))
  if (kept === undefined) {
    const drawn = Redacted.make(randomBytes(32).toString("base64"))
    yield* unavailable(durable.rows(keepStatement, [seal(drawn, BELONGS_TO).toString("base64")]))
    // Of two first starts one was faster.
    ;[kept] = yield* unavailable(durable.rows(keptStatement, []))
  }
  const text = Result.try(() => open(Buffer.from(kept![0]!, "base64"), BELONGS_TO))
  if (Result.isFailure(text)) {
    return yield* new WrongEncryptionKey({
      message:
        "no encryption key that is given sealed the secrets of this database: bring the right POSTHASTE_ENCRYPTION_KEY back, or the file encryption-key; while keys rotate, POSTHASTE_ENCRYPTION_KEYS holds the old one behind the new"
    })
  }
  return text.success
})

/** SHA-256 takes about a microsecond for a message of usual size. */
export const fingerprintWith = (key: string): Fingerprint["Service"] => ({
  of: (text) => hash("sha256", text, "hex"),
  line: (text) =>
    createHmac("sha256", key)
      .update(text)
      .digest("hex")
      .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")
})

export const layer = (key: SealingKey, older: ReadonlyArray<SealingKey> = []) =>
  Layer.effect(
    Fingerprint,
    Effect.map(check(key, older), (text) => fingerprintWith(Redacted.value(text)))
  )
