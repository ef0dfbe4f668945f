/**
 * Texts that are stored sealed where POSTHASTE_SEAL_BODIES says so: bodies, answers of destinations, the hashes of requests (whoever
 * guesses a short body could check the guess by its hash), requests that were refused after their caller had gone, and receipts that wait
 * to be applied.
 *
 * - A text is sealed with AES-256-GCM and a random nonce. What it belongs to is bound into it: moved to another message, attempt
 *   or key it does not open.
 * - The key is a data key: a process makes its own, or takes the one that another made in the last day, and keeps it in `data_key`,
 *   sealed with the newest encryption key. So a new encryption key costs some rows a day that there was, however many texts there are,
 *   and however often processes started. No row goes: whether a text still needs it only a look at all texts could tell.
 * - The data key goes with every statement that stores texts, and is written by the one that finds it missing. So no
 *   text is without its key, also where the database has lost its last commits, was restored, or is another server now.
 * - What is sealed is opened whatever the setting says, and what was stored in the clear stays readable: the setting may change at
 *   any time. A sealed text begins with U+0001; so does a clear one that would begin with it anyway, with another mark behind.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  randomUUID
} from "node:crypto"
import { Context, Effect, Layer, Redacted, Result } from "effect"
import type { Sealing } from "./destinations/sealing.ts"
import { Postgres, prepared, type QueryFailed, type Statement } from "./Postgres.ts"

const MARK = "\u0001"
/** Behind the mark: what comes is the text itself. */
const CLEAR = "c"

/** What a text is. */
export const kinds = {
  /** By the id of its message. */
  body: "b",
  /** By the id of its event. */
  eventBody: "e",
  /** By message, epoch and attempt. */
  answer: "a",
  /** The hash of a request, by the org and the key that the request used. */
  keyOfMessage: "k",
  keyOfEvent: "l",
  /** A refused command, by its id. */
  refused: "r",
  /** A provider's receipt, by its account. */
  receipt: "p"
} as const
export type Kind = keyof typeof kinds

const nameOf: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(kinds).map(([kind, mark]) => [mark, kind])
)

const NO_KEY = "it is sealed, and no encryption key is given: set POSTHASTE_ENCRYPTION_KEYS"

/** It was changed or moved, or the key that it names is not there. */
export class TextDoesNotOpen extends Error {
  override readonly name = "TextDoesNotOpen"
}

/** A statement, and the values it runs with. */
export type Writing = (values: ReadonlyArray<unknown>) => readonly [Statement, ReadonlyArray<unknown>]

export interface Texts {
  /** Whether new texts are sealed. */
  readonly seals: boolean
  /** As the text is to be stored. The statement that stores it must be one of `writing`, in the same step. */
  readonly seal: (kind: Kind, id: string, text: string) => string
  readonly writing: (statement: Statement) => Writing
  /** Before `open`: reads the keys that these name. */
  readonly prepare: (stored: ReadonlyArray<string | null | undefined>) => Effect.Effect<void, QueryFailed>
  /**
   * What stands beside a sealed text for a word of it, so that the text is found by whoever knows the word and has the key. Only with the
   * key that sealed `stored`, after `prepare`; throws `TextDoesNotOpen`.
   */
  readonly hashed: (stored: string, word: string) => string
  /** The text that was stored; throws `TextDoesNotOpen`. `ids`: of what it may belong to. */
  readonly open: (stored: string, ids: { readonly [kind in Kind]?: string | undefined }) => string
}

const isMarked = (stored: string) => stored.charCodeAt(0) === 1
export const isSealed = (stored: string): boolean => isMarked(stored) && stored[1] !== CLEAR

const clearly = (text: string): string => (isMarked(text) ? MARK + CLEAR + text : text)

/** Where no key is given. */
export const clearTexts: Texts = {
  seals: false,
  seal: (_kind, _id, text) => clearly(text),
  writing: (statement) => (values) => [statement, values],
  prepare: () => Effect.void,
  open: (stored) => {
    if (!isMarked(stored)) return stored
    if (stored[1] === CLEAR) return stored.slice(2)
    throw new TextDoesNotOpen(NO_KEY)
  },
  hashed: () => {
    throw new TextDoesNotOpen(NO_KEY)
  }
}

export class SealedTexts extends Context.Reference<Texts>("posthaste/adapters/postgres/SealedTexts", {
  defaultValue: () => clearTexts
}) {}

const ID_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
/** Random nonces of one key may come so often and no more (NIST SP 800-38D allows 2^32). */
const TEXTS_MAX = 2 ** 30
/** Of a key that others have too: two hundred starts in a day may go so far. */
const SHARED_TEXTS_MAX = 2 ** 24

interface DataKey {
  readonly id: string
  readonly idBytes: Buffer
  readonly key: KeyObject
}

const dataKeyOf = (id: string, bytes: Uint8Array): DataKey => ({
  id,
  idBytes: Buffer.from(id.replaceAll("-", ""), "hex"),
  key: createSecretKey(bytes)
})

/** What a data key is bound to. */
export const keyBelongsTo = (id: string) => `data_key:${id}`
const boundTo = (mark: string, id: string) => Buffer.from(`${mark}:${id}`)

/** Random bytes cost as much for one nonce as for many. */
const NONCES_AT_ONCE = 256
let nonces = Buffer.alloc(0)
const newNonce = (): Buffer => {
  if (nonces.length === 0) nonces = randomBytes(NONCE_BYTES * NONCES_AT_ONCE)
  const nonce = nonces.subarray(0, NONCE_BYTES)
  nonces = nonces.subarray(NONCE_BYTES)
  return nonce
}

const sealedWith = ({ idBytes, key }: DataKey, mark: string, id: string, text: string): string => {
  const nonce = newNonce()
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(boundTo(mark, id))
  const sealed = cipher.update(text, "utf8")
  cipher.final()
  return MARK + mark + Buffer.concat([idBytes, nonce, cipher.getAuthTag(), sealed]).toString("base64")
}

const keyIn = (stored: string): string => Buffer.from(stored.slice(2, 26), "base64").toString("hex", 0, ID_BYTES)

const openedWith = (key: KeyObject, stored: string, mark: string, id: string): string => {
  const bytes = Buffer.from(stored.slice(2), "base64").subarray(ID_BYTES)
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(boundTo(mark, id))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  return decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8")
}

/** Behind its two marks a sealed text begins with so many characters that its data key alone decides; the next one is shared with the nonce. */
export const KEY_CHARACTERS = 21

/** The id of the data key that a sealed text names. */
export const dataKeyIn = (stored: string): string =>
  keyIn(stored).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")

const keysStatement = prepared`select replace(id::text, '-', ''), id, sealed from data_key where id = any ($1::uuid[])`

const youngestStatement = prepared`select id, sealed from data_key
    where sealed_by = $1 and at > clock_timestamp() - interval '1 day' order by at desc, id limit 1`

const WITH = "with "

/** The same statement, which also keeps the data key in its last two values and the id of what sealed that. */
const keepingTheKey = ({ text }: Statement): Statement => {
  const values = Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)))
  const [id, sealed, sealedBy] = [1, 2, 3].map((n) => `$${values + n}`)
  const keeping = `kept_data_key as (
      insert into data_key (id, sealed, sealed_by) select ${id}::uuid, ${sealed}::text, ${sealedBy}::text
        where not exists (select from data_key where id = ${id}::uuid)
      on conflict do nothing
    )`
  return prepared`with ${keeping}${text.startsWith(WITH) ? `, ${text.slice(WITH.length)}` : ` ${text}`}`
}

/** `sealing` is asked for once, and only when something is to be sealed or opened. */
export const layer = <E>(sealing: Effect.Effect<Sealing | null, E>, seals: boolean) =>
  Layer.effect(
    SealedTexts,
    Effect.gen(function* () {
      const { lookups } = yield* Postgres
      const known = new Map<string, KeyObject>()
      const asked = yield* Effect.cached(Effect.orDie(sealing))

      const prepare = Effect.fnUntraced(function* (stored: ReadonlyArray<string | null | undefined>) {
        const missing = new Set<string>()
        for (const text of stored) {
          if (text == null || !isSealed(text)) continue
          const id = keyIn(text)
          if (!known.has(id) && id.length === 2 * ID_BYTES) missing.add(id)
        }
        if (missing.size === 0) return
        const keys = yield* asked
        if (keys === null) return yield* Effect.die(new TextDoesNotOpen(NO_KEY))
        for (const [hex, id, sealed] of yield* lookups.rows(keysStatement, [[...missing]])) {
          const opened = Result.try(() => keys.open(Buffer.from(sealed!, "base64"), keyBelongsTo(id!)))
          // Sealed with an encryption key that is not given: whatever needs it does not open, and the rest does.
          if (Result.isFailure(opened)) continue
          known.set(hex!, createSecretKey(Buffer.from(Redacted.value(opened.success), "base64")))
        }
      })

      const keyOf = (stored: string): KeyObject => {
        const key = known.get(keyIn(stored))
        if (key !== undefined) return key
        throw new TextDoesNotOpen("the key that it was sealed with is not there, or does not open")
      }
      const open: Texts["open"] = (stored, ids) => {
        if (!isSealed(stored)) return clearTexts.open(stored, ids)
        const mark = stored[1]!
        const id = ids[nameOf[mark] as Kind]
        if (id === undefined) throw new TextDoesNotOpen("it is sealed as something else than it is")
        const key = keyOf(stored)
        try {
          return openedWith(key, stored, mark, id)
        } catch {
          throw new TextDoesNotOpen("it was changed, or belongs to something else")
        }
      }

      const reading = {
        prepare: (stored: Parameters<Texts["prepare"]>[0]) =>
          stored.some(isAnySealed) ? prepare(stored) : Effect.void,
        open,
        hashed: (stored: string, word: string) =>
          createHmac("sha256", keyOf(stored)).update(`word:${word}`).digest("base64")
      }
      if (!seals) return { ...clearTexts, ...reading }

      const keys = yield* asked
      if (keys === null) return yield* Effect.die(new Error("texts are to be sealed, and no encryption key is given"))
      const newKey = () => {
        const bytes = randomBytes(KEY_BYTES)
        const key = dataKeyOf(randomUUID(), bytes)
        const sealed = keys.seal(Redacted.make(bytes.toString("base64")), keyBelongsTo(key.id)).toString("base64")
        known.set(key.idBytes.toString("hex"), key.key)
        return { key, values: [key.id, sealed, keys.ids[0]] as const, texts: 0 }
      }
      /** Null also where the database does not answer now, or somebody changed the row: then the process has a key of its own. */
      const anothers = Effect.gen(function* () {
        const [row] = yield* lookups.rows(youngestStatement, [keys.ids[0]])
        const [id, sealed] = row ?? []
        if (id == null || sealed == null) return null
        const bytes = Result.try(() => keys.open(Buffer.from(sealed, "base64"), keyBelongsTo(id)))
        if (Result.isFailure(bytes)) return null
        const key = dataKeyOf(id, Buffer.from(Redacted.value(bytes.success), "base64"))
        known.set(key.idBytes.toString("hex"), key.key)
        return { key, values: [id, sealed, keys.ids[0]] as const, texts: TEXTS_MAX - SHARED_TEXTS_MAX }
      })
      let own = (yield* Effect.orElseSucceed(anothers, () => null)) ?? newKey()
      return {
        ...reading,
        seals,
        seal: (kind, id, text) => {
          own.texts += 1
          return sealedWith(own.key, kinds[kind], id, text)
        },
        writing: (statement) => {
          const keeping = keepingTheKey(statement)
          return (values) => {
            const all = [...values, ...own.values]
            // Between two statements: none carries another key than its texts name.
            if (own.texts >= TEXTS_MAX) own = newKey()
            return [keeping, all]
          }
        }
      } satisfies Texts
    })
  )

const isAnySealed = (text: string | null | undefined) => text != null && isSealed(text)
