/** Posthaste's queues and exchanges, declared on every connection. Those of another kind are refused. */
import { Effect, Schema } from "effect"
import type { Channel } from "rabbitmq-client"
import type { Link } from "./client/connect.ts"
import { openChannel } from "./client/publisher.ts"

export const COMMANDS = "posthaste.commands"
export const REJECTED = "posthaste.commands.rejected"
export const EVENTS = "posthaste.events"
export const DEAD_LETTERS = "posthaste.dead-letters"

/** The broker moves a command that ended its reader this often to the rejected queue. */
const DELIVERIES_MAX = 1_000

class WrongTopology extends Schema.TaggedError<WrongTopology>()("WrongTopology", {
  name: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `RabbitMQ has a ${this.name} that is not as Posthaste needs it. Remove it, or give Posthaste a virtual host of its own. (${this.detail})`
  }
}

const quorum = { "x-queue-type": "quorum" } as const

export type Declaration = readonly [name: string, declare: (channel: Channel) => Promise<unknown>]

export const forCommands: ReadonlyArray<Declaration> = [
  [`queue ${REJECTED}`, (channel) => channel.queueDeclare({ queue: REJECTED, durable: true, arguments: quorum })],
  [
    `queue ${COMMANDS}`,
    (channel) =>
      channel.queueDeclare({
        queue: COMMANDS,
        durable: true,
        arguments: {
          ...quorum,
          // One process reads, so that commands are accepted in the order of the queue.
          "x-single-active-consumer": true,
          "x-delivery-limit": DELIVERIES_MAX,
          "x-dead-letter-exchange": "",
          "x-dead-letter-routing-key": REJECTED,
          "x-dead-letter-strategy": "at-least-once",
          "x-overflow": "reject-publish"
        }
      })
  ]
]

export const forFacts: ReadonlyArray<Declaration> = [
  [`exchange ${EVENTS}`, (channel) => channel.exchangeDeclare({ exchange: EVENTS, type: "topic", durable: true })],
  [
    `exchange ${DEAD_LETTERS}`,
    (channel) => channel.exchangeDeclare({ exchange: DEAD_LETTERS, type: "topic", durable: true })
  ]
]

/** A refusal closes its channel, so this one is used for nothing else. */
export const declareAll = Effect.fnUntraced(function* (link: Link, declarations: ReadonlyArray<Declaration>) {
  const channel = yield* openChannel(link)
  for (const [name, declare] of declarations) {
    yield* Effect.tryPromise({
      try: () => declare(channel),
      catch: (error) => new WrongTopology({ name, detail: error instanceof Error ? error.message : String(error) })
    })
  }
}, Effect.scoped)
