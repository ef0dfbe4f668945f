/**
 * Where messages go: from what a request says (`channel`, `to` and, for WhatsApp, its payload) to the destination
 * in whose lane it will wait, or to every reason why there is none.
 *
 * The recipient is the destination itself for the channels `webhook` and `http`. For `whatsapp` it is a phone number,
 * and the destination the account it is written to from.
 */
import { Effect, Result } from "effect"
import { presets, type RetryPolicy } from "../../domain/delivery/retry.ts"
import { type ChannelName, DestinationId, isUuid, type OrgId } from "../../domain/ids.ts"
import { readPayload } from "../../domain/whatsapp/content.ts"
import { recipientOf } from "../../domain/whatsapp/recipient.ts"
import type { Fault, StoreUnavailable } from "../errors.ts"
import { Endpoints } from "../ports/Endpoints.ts"
import { HttpTargets } from "../ports/HttpTargets.ts"
import { WhatsAppAccounts } from "../ports/WhatsAppAccounts.ts"
import type { MessageRequest } from "./acceptMessage.ts"

export interface Address {
  /** As it is stored, sent and shown. */
  readonly to: string
  readonly destination: DestinationId
  /** Of messages that bring no policy of their own. */
  readonly retry: RetryPolicy
}

export type Addressing = Result.Result<Address, ReadonlyArray<Fault>>

type Request = Pick<MessageRequest, "channel" | "to" | "templateCode" | "body">

/** What a request names, before anybody was asked whether it exists. */
interface Named {
  readonly to: string
  /** Null names none in particular. */
  readonly destination: string | null
}

interface Destination {
  readonly id: DestinationId
  readonly retry: RetryPolicy | null
}

/** In the order of the requests. Each destination is asked for once, however many requests name it. */
export const addressesOf = Effect.fnUntraced(function* (orgId: OrgId, requests: ReadonlyArray<Request>) {
  const find = yield* finder(orgId)
  const named = requests.map(namedBy)
  const wanted = new Map<string, readonly [ChannelName, string | null]>()
  for (const [index, name] of named.entries()) {
    const { channel } = requests[index]!
    if (Result.isSuccess(name)) wanted.set(keyOf(channel, name.success), [channel, name.success.destination])
  }
  const found = new Map<string, ReadonlyArray<Destination>>()
  yield* Effect.forEach(
    wanted,
    ([key, [channel, destination]]) =>
      Effect.map(find(channel, destination), (destinations) => found.set(key, destinations)),
    { discard: true, concurrency: 8 }
  )
  return named.map((name, index): Addressing => {
    const { channel } = requests[index]!
    return Result.flatMap(name, (one) => addressOf(channel, one, found.get(keyOf(channel, one)) ?? []))
  })
})

const keyOf = (channel: ChannelName, { destination }: Named) => JSON.stringify([channel, destination])

/**
 * The org's destinations of that name: none, the one, or more than one for a name that is none. What an attempt may
 * work with is good enough here too: these methods remember for a second, and a read of the database for each accept
 * was a third of its cost.
 */
const finder = Effect.fnUntraced(function* (orgId: OrgId) {
  const endpoints = yield* Endpoints
  const targets = yield* HttpTargets
  const accounts = yield* WhatsAppAccounts
  const byId = (id: string | null, find: (id: DestinationId) => Effect.Effect<Destination | null, StoreUnavailable>) =>
    id !== null && isUuid(id)
      ? Effect.map(find(DestinationId.make(id)), (one) => (one === null ? [] : [one]))
      : Effect.succeed([])
  return (channel: ChannelName, name: string | null): Effect.Effect<ReadonlyArray<Destination>, StoreUnavailable> => {
    switch (channel) {
      case "webhook":
        return byId(name, (id) => Effect.map(endpoints.signing(orgId, id), (signing) => signing?.endpoint ?? null))
      case "http":
        return byId(name, (id) => Effect.map(targets.calling(orgId, id), (calling) => calling?.target ?? null))
      case "whatsapp":
        return accounts.named(orgId, name)
      case "amqp":
        return Effect.succeed([])
    }
  }
})

const namedBy = ({ channel, to, templateCode, body }: Request): Result.Result<Named, ReadonlyArray<Fault>> => {
  if (channel !== "whatsapp") return Result.succeed({ to, destination: to })
  const recipient = recipientOf(to)
  const payload = readPayload(templateCode, body)
  return recipient !== null && Result.isSuccess(payload)
    ? Result.succeed({ to: recipient, destination: payload.success.from })
    : Result.fail([
        ...(recipient === null ? [noPhoneNumber] : []),
        ...(Result.isFailure(payload) ? payload.failure : [])
      ])
}

const noPhoneNumber: Fault = {
  field: "to",
  reason: "must be a phone number with its country code, 8 to 15 digits, such as +4915112345678"
}

const addressOf = (
  channel: ChannelName,
  { to, destination: name }: Named,
  [destination, ...others]: ReadonlyArray<Destination>
): Addressing => {
  if (destination === undefined) return Result.fail([nobody(channel, name)])
  if (others.length > 0) {
    return Result.fail([
      { field: "payloadJson.from", reason: "is required: this org has more than one WhatsApp account" }
    ])
  }
  const preset = channel === "whatsapp" ? presets.whatsapp : presets.webhook
  return Result.succeed({ to, destination: destination.id, retry: destination.retry ?? preset })
}

const nobody = (channel: ChannelName, name: string | null): Fault => {
  switch (channel) {
    case "webhook":
      return { field: "to", reason: "is not the id of a webhook endpoint of this org" }
    case "http":
      return { field: "to", reason: "is not the id of an HTTP target of this org" }
    case "whatsapp":
      return name === null
        ? { field: "channel", reason: "whatsapp needs a WhatsApp account, and this org has none" }
        : { field: "payloadJson.from", reason: "is not the id or phoneNumberId of a WhatsApp account of this org" }
    case "amqp":
      return { field: "channel", reason: "amqp is not built in yet; webhook, http and whatsapp are" }
  }
}
