/**
 * Posthaste in EventStoreDB: a message is the stream `message-<id>`, a fact an event of type `Type@version` with its
 * JSON; time, actor and append stand in its metadata. Revisions begin at 0, versions at 1.
 */
import { createHash } from "node:crypto"
import { type EventData, type JSONType, jsonEvent } from "@eventstore/db-client"
import { DateTime } from "effect"
import type { Writing } from "../../application/ports/Streams.ts"
import { messageOf, streamOf } from "../../domain/streams.ts"

export interface ReadEvent {
  readonly id: string
  readonly stream: string
  readonly revision: number
  readonly type: string
  readonly data: unknown
  readonly metadata: unknown
  readonly createdMs: number
}

/** Drawn once; never to change. */
const NAMESPACE = Buffer.from("b3c5c0de2f7a4f0e8d1b9a6e4c7f2d18", "hex")

const uuid5 = (name: string): string => {
  const bytes = createHash("sha1").update(NAMESPACE).update(name).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}

/**
 * UUIDv5 of stream, version and writing. Without the writing two writers that race for a version would share it, and
 * the loser would be told that its facts are there.
 */
const eventId = (stream: string, version: number, writing: string): string => uuid5(`${stream}/${version}/${writing}`)

export const eventsOf = ({ messageId, expected, writing, at, actor, facts }: Writing): ReadonlyArray<EventData> =>
  facts.map(({ name, data }, n) =>
    jsonEvent({
      id: eventId(streamOf(messageId), expected + n + 1, writing),
      type: name,
      data: JSON.parse(data) as JSONType,
      metadata: { at: DateTime.formatIso(at), actor, writing }
    })
  )

interface Circumstances {
  readonly at: DateTime.Utc
  readonly actor: string | null
  readonly writing: string
}

const circumstancesOf = ({ id, metadata, createdMs }: ReadEvent): Circumstances => {
  const said = (metadata ?? {}) as { readonly at?: unknown; readonly actor?: unknown; readonly writing?: unknown }
  const millis = typeof said.at === "string" ? Date.parse(said.at) : Number.NaN
  return {
    at: DateTime.makeUnsafe(Number.isNaN(millis) ? createdMs : millis),
    actor: typeof said.actor === "string" ? said.actor : null,
    writing: typeof said.writing === "string" ? said.writing : id
  }
}

export const writingOf = (event: ReadEvent): string => circumstancesOf(event).writing

/** Events of one stream, append by append. */
export const writingsOf = (events: ReadonlyArray<ReadEvent>): ReadonlyArray<Writing> => {
  const writings: Array<Writing & { facts: Array<Writing["facts"][number]> }> = []
  for (const event of events) {
    const circumstances = circumstancesOf(event)
    const fact = { name: event.type, data: JSON.stringify(event.data) }
    const last = writings.at(-1)
    if (last?.writing === circumstances.writing) last.facts.push(fact)
    else
      writings.push({
        ...{ messageId: messageOf(event.stream)!, expected: event.revision, facts: [fact] },
        ...circumstances
      })
  }
  return writings
}
