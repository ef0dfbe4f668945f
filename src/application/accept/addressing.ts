/**
 * Addresses messages: from `channel`, `to` and payload of a request to the destination in whose lane the message will
 * wait, or to the faults. The channel's record knows how a request names a destination.
 */
import { Effect, Result } from "effect"
import type { RetryPolicy } from "../../domain/delivery/retry.ts"
import { type ChannelName, DestinationId, isUuid, type OrgId } from "../../domain/ids.ts"
import { type Addressee, type AnyChannel, Channels } from "../ports/Channels.ts"
import { type Destination, Destinations } from "../ports/Destinations.ts"
import type { Fault } from "../ports/errors.ts"
import type { MessageRequest } from "./acceptMessage.ts"

export interface Address {
  readonly to: string
  readonly destination: DestinationId
  readonly retry: RetryPolicy
}

export type Addressing = Result.Result<Address, ReadonlyArray<Fault>>

type Request = Pick<MessageRequest, "channel" | "to" | "templateCode" | "body" | "routingKey">

export const noSuchChannel = (channels: Channels["Service"]): Fault => ({
  field: "channel",
  reason: `must be one of the channels there are: ${[...channels.keys()].join(", ")}`
})

export const retryPolicyOf = (
  channel: AnyChannel,
  ofDestination: RetryPolicy | null,
  ofOrg: RetryPolicy | null
): RetryPolicy => ofDestination ?? ofOrg ?? channel.retry

/** In the order of the requests. Each destination is read once. */
export const addressesOf = Effect.fnUntraced(function* (
  orgId: OrgId,
  requests: ReadonlyArray<Request>,
  retryOfOrg: RetryPolicy | null
) {
  const channels = yield* Channels
  const addressees = requests.map((request) => {
    const channel = channels.get(request.channel)
    if (channel === undefined) return Result.fail([noSuchChannel(channels)])
    return request.routingKey === undefined || channel.takesRoutingKey
      ? channel.addresseeOf(request)
      : Result.fail([{ field: "routingKey", reason: `is no field of a message for the channel ${channel.name}` }])
  })
  const named = new Map<string, readonly [ChannelName, string | null]>()
  for (const [index, addressee] of addressees.entries()) {
    const { channel } = requests[index]!
    if (Result.isSuccess(addressee))
      named.set(keyOf(channel, addressee.success), [channel, addressee.success.destination])
  }
  const found = new Map<string, ReadonlyArray<Destination>>()
  yield* Effect.forEach(
    named,
    ([key, [channel, name]]) => Effect.map(find(orgId, channel, name), (some) => found.set(key, some)),
    { discard: true, concurrency: 8 }
  )
  return addressees.map((addressee, index): Addressing => {
    const channel = channels.get(requests[index]!.channel)
    return Result.flatMap(addressee, (one) =>
      addressOf(channel!, one, found.get(keyOf(channel!.name, one)) ?? [], retryOfOrg)
    )
  })
})

const keyOf = (channel: ChannelName, { destination }: Addressee) => JSON.stringify([channel, destination])

/**
 * The org's destinations with that name, or all for null. The answer may be a second old: a read of the database for
 * each accept was a third of its cost.
 */
const find = Effect.fnUntraced(function* (orgId: OrgId, channel: ChannelName, name: string | null) {
  const destinations = yield* Destinations
  if (name === null || !isUuid(name)) return yield* destinations.named(orgId, channel, name)
  const open = yield* destinations.forSending(orgId, DestinationId.make(name))
  return open?.destination.channel === channel ? [open.destination] : []
})

const addressOf = (
  channel: AnyChannel,
  { to, destination: name }: Addressee,
  [destination, ...others]: ReadonlyArray<Destination>,
  retryOfOrg: RetryPolicy | null
): Addressing => {
  const { addressField: field, noun } = channel
  if (destination === undefined) return Result.fail([notFound(channel, name)])
  if (others.length > 0) {
    return Result.fail([{ field, reason: `is required: this org has more than one ${noun}` }])
  }
  const retry = retryPolicyOf(channel, destination.settings.retry, retryOfOrg)
  return Result.succeed({ to, destination: destination.id, retry })
}

const notFound = (channel: AnyChannel, name: string | null): Fault => {
  const { article, noun, addressField: field } = channel
  if (name === null) {
    return { field: "channel", reason: `${channel.name} needs ${article} ${noun}, and this org has none` }
  }
  const key = publicKeyOf(channel)
  const names = key === null ? "the id" : `the id or ${key}`
  return { field, reason: `is not ${names} of ${article} ${noun} of this org` }
}

export const publicKeyOf = ({ settings }: AnyChannel): string | null =>
  Object.keys(settings).find((name) => settings[name]!.publicKey !== undefined) ?? null
