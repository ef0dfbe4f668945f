/**
 * How Posthaste looks in EventStoreDB: a message is the stream `message-<id>`, a fact is an event of type `Type@version`
 * with its JSON, and who and when stand in the event's metadata. Revisions begin at 0 where versions begin at 1. What is sealed in it
 * is the matter of sealedFacts.ts.
 */
import { createHash, randomUUID } from "node:crypto"
import { type EventData, type JSONType, jsonEvent } from "@eventstore/db-client"
import { DateTime, Result } from "effect"
import { fromRecorded } from "../../domain/message/recorded.ts"
import type { StoredFact } from "../../domain/message/view.ts"
import type { RecordedFact } from "../../domain/recorded.ts"

/** An event as it was read. */
export interface ReadEvent {
  readonly id: string
  readonly stream: string
  readonly revision: number
  readonly type: string
  readonly data: unknown
  readonly metadata: unknown
  readonly createdMs: number
  /** Null when the server does not tell. */
  readonly position: string | null
  /** Something in it is sealed with a key that is not there, although nobody has erased it. */
  readonly lacksKey?: boolean
}

/** Chosen once, at random; never to change. */
const NAMESPACE = Buffer.from("b3c5c0de2f7a4f0e8d1b9a6e4c7f2d18", "hex")

const uuid5 = (name: string): string => {
  const bytes = createHash("sha1").update(NAMESPACE).update(name).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}

/**
 * UUIDv5 of stream, version and writing: the same for every repeat of one append, and no other append's. Of stream and
 * version alone it would be the same for two writers who race for a version, and the server would answer the loser
 * that its facts are there already.
 */
export const eventId = (stream: string, version: number, writing: string): string =>
  uuid5(`${stream}/${version}/${writing}`)

export const newWriting = (): string => randomUUID()

/** Copies have one writing: whoever copies a fact writes the same event. */
export const COPY = "copy"

interface Circumstances {
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly correlationId?: string | null | undefined
  /** What was taken out of the fact. */
  readonly sealed?: string | null
}

/** `said` is the fact's JSON, parsed. */
export const eventOf = (id: string, name: string, said: unknown, about: Circumstances): EventData =>
  jsonEvent({
    id,
    type: name,
    data: said as JSONType,
    metadata: {
      at: DateTime.formatIso(about.at),
      actor: about.actor,
      // EventStoreDB's own projection gathers events by this name.
      ...(about.correlationId == null ? {} : { $correlationId: about.correlationId }),
      ...(about.sealed == null ? {} : { sealed: about.sealed })
    }
  })

export const circumstancesOf = ({ metadata, createdMs }: ReadEvent): { at: DateTime.Utc; actor: string | null } => {
  const said = (metadata ?? {}) as { readonly at?: unknown; readonly actor?: unknown }
  const millis = typeof said.at === "string" ? Date.parse(said.at) : Number.NaN
  return {
    at: DateTime.makeUnsafe(Number.isNaN(millis) ? createdMs : millis),
    actor: typeof said.actor === "string" ? said.actor : null
  }
}

export const recordedOf = ({ type, data }: ReadEvent): RecordedFact => ({ name: type, data: JSON.stringify(data) })

/** A fact this release cannot read is a bug or a downgrade, not a state to recover from. */
export const storedFactOf = (event: ReadEvent): StoredFact => ({
  version: event.revision + 1,
  ...circumstancesOf(event),
  fact: Result.getOrThrow(fromRecorded(recordedOf(event)))
})
