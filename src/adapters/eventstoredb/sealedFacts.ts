/**
 * What facts say of a person is sealed in their events, with the key of their stream, because no event can be changed: when the key is
 * thrown away the person is gone, and the history is as it was.
 *
 * An event holds what an erasure leaves of its fact. The fact itself, with who is behind it, is beside it in the event's metadata, sealed
 * with AES-256-GCM and bound to its stream and version. Whoever reads an event without its key reads the erased fact. A fact that says
 * nothing of a person is in the clear.
 *
 * This is the one place where facts become events and events become facts again.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import type { EventData } from "@eventstore/db-client"
import { Effect, Redacted } from "effect"
import { StoreUnavailable } from "../../application/errors.ts"
import type { JournalFact } from "../../application/ports/Journals.ts"
import type { StreamKey, StreamKeys } from "../../application/ports/StreamKeys.ts"
import { erasedActor, isErasable, isPersonal, leftOf } from "../../domain/erasure/erased.ts"
import { circumstancesOf, eventOf, type ReadEvent, recordedOf } from "./streams.ts"

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The key of one stream; null where its facts are not sealed. */
type Key = StreamKey | null

/** A fact that is to be an event. */
export interface FactToStore extends JournalFact {
  readonly id: string
  readonly correlationId?: string | null
}

/** Whether facts say anything of a person is found out when somebody asks, and once: most appends of a service that seals nothing never do. */
export interface Judged {
  readonly fact: FactToStore
  readonly judgement: () => Judgement
}

interface Judgement {
  readonly said: unknown
  /** What an erasure leaves of it and of who commanded it. */
  readonly left: unknown
  readonly actor: string | null
  readonly isPersonal: boolean
}

export const judged = (fact: FactToStore): Judged => {
  let known: Judgement | null = null
  return { fact, judgement: () => (known ??= judgementOf(fact)) }
}

const judgementOf = (fact: FactToStore): Judgement => {
  const said: unknown = JSON.parse(fact.data)
  const left = leftOf(fact.name, said)
  const actor = erasedActor(fact.actor)
  return { said, left, actor, isPersonal: left !== said || actor !== fact.actor }
}

export const areAnyPersonal = (facts: ReadonlyArray<Judged>): boolean =>
  facts.some(({ judgement }) => judgement().isPersonal)

/** Facts of one stream. */
export const eventsOf = Effect.fnUntraced(function* (
  stream: string,
  key: Key,
  facts: ReadonlyArray<Judged>
): Effect.fn.Return<ReadonlyArray<EventData>, StoreUnavailable> {
  if (key === "Shut") return yield* Effect.fail(new StoreUnavailable({ cause: stream, says: SHUT }))
  return facts.map(({ fact, judgement }) => {
    const { id, name, version, at, actor, correlationId } = fact
    if (key === null) return eventOf(id, name, JSON.parse(fact.data), { at, actor, correlationId })
    const { said, left, isPersonal, actor: known } = judgement()
    if (!isPersonal) return eventOf(id, name, said, { at, actor, correlationId })
    const sealed = key === "Erased" ? null : sealedWith(Redacted.value(key), `${stream}/${version}`, fact)
    return eventOf(id, name, left, { at, actor: known, sealed })
  })
})

const SHUT = "the key that facts are sealed with does not open: is an encryption key missing?"

/** Facts of a journal, or of a message that is restored. */
export const eventsWithKey = Effect.fnUntraced(function* (
  keys: StreamKeys["Service"],
  stream: string,
  given: ReadonlyArray<FactToStore>
) {
  const facts = given.map(judged)
  const isNeeded = isErasable(stream) && areAnyPersonal(facts)
  return yield* eventsOf(stream, isNeeded ? ((yield* keys.make([stream])).get(stream) ?? null) : null, facts)
})

/** These events with what is sealed in them, where their keys are. */
export const opened = Effect.fnUntraced(function* (keys: StreamKeys["Service"], events: ReadonlyArray<ReadEvent>) {
  const streams = new Set(events.flatMap((event) => (sealedIn(event) === null ? [] : [event.stream])))
  if (streams.size === 0) return events
  const found = yield* keys.of([...streams])
  return events.map((event) => {
    const sealed = sealedIn(event)
    return sealed === null ? event : openedWith(found.get(event.stream) ?? null, sealed, event)
  })
})

const openedWith = (key: Key, sealed: string, event: ReadEvent): ReadEvent => {
  if (key === "Erased") return event
  if (key === null) return { ...event, lacksKey: true }
  try {
    if (key === "Shut") throw new Error(SHUT)
    const text = openedText(Redacted.value(key), `${event.stream}/${event.revision + 1}`, sealed)
    const [data, actor] = JSON.parse(text) as [string, string | null]
    return { ...event, data: JSON.parse(data), metadata: { ...(event.metadata as object), actor } }
  } catch {
    // As any fact that can't be read: its stream is set aside, and nobody takes the erased fact for the true one.
    return { ...event, data: null }
  }
}

/** Whether an event says in the clear what an erasure should have taken. */
export const isClear = (event: ReadEvent): boolean => isPersonal(recordedOf(event), circumstancesOf(event).actor)

const sealedIn = ({ metadata }: ReadEvent): string | null => {
  const { sealed } = (metadata ?? {}) as { readonly sealed?: unknown }
  return typeof sealed === "string" ? sealed : null
}

const sealedWith = (key: Uint8Array, belongsTo: string, { data, actor }: JournalFact): string => {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(belongsTo))
  const text = Buffer.concat([cipher.update(JSON.stringify([data, actor]), "utf8"), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64")
}

const openedText = (key: Uint8Array, belongsTo: string, sealed: string): string => {
  const bytes = Buffer.from(sealed, "base64")
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(belongsTo))
    .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
  return decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8")
}
