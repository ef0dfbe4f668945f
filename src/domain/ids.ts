/** The ids of things, branded, so that a message can't be handed where an org is meant. */
import { Schema } from "effect"

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/u
export const isUuid = (text: string): boolean => uuid.test(text)

const Uuid = Schema.String.check(Schema.isPattern(uuid, { title: "a lower-case UUID" }))

export const MessageId = Uuid.pipe(Schema.brand("MessageId"))
export type MessageId = typeof MessageId.Type

export const DestinationId = Uuid.pipe(Schema.brand("DestinationId"))
export type DestinationId = typeof DestinationId.Type

export const EventId = Uuid.pipe(Schema.brand("EventId"))
export type EventId = typeof EventId.Type

export const ReplayId = Uuid.pipe(Schema.brand("ReplayId"))
export type ReplayId = typeof ReplayId.Type

export const OrgId = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/u, {
    title: "1 to 64 letters, digits, dots, dashes or underscores"
  })
).pipe(Schema.brand("OrgId"))
export type OrgId = typeof OrgId.Type

/**
 * The name of a channel. The process's records define which exist (application/ports/Channels.ts); a fact may name one
 * that this release does not have. Not branded: each is written by hand in the channel's record.
 */
export const ChannelName = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9-]{0,31}$/u, { title: "the name of a channel" })
)
export type ChannelName = typeof ChannelName.Type
