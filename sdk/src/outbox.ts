/**
 * `posthaste/outbox`: sends a message, or publishes an event, inside your own transaction. It is accepted if and only if the
 * transaction commits. Posthaste's tables are in the same database; the statement calls its SQL function `posthaste.send` or
 * `posthaste.publish`.
 */
import type { MessageRequest } from "./api.ts"
import { type DatabaseClient, databaseOf, quoted } from "./database.ts"

export type { DatabaseClient } from "./database.ts"

/** A message as in `POST /outbound/messages`, and the org that sends it. */
export interface OutboxMessage extends MessageRequest {
  readonly org: string
  /** The same key and the same message are sent once. */
  readonly idempotencyKey?: string | undefined
}

/** An event as in `POST /events`, and the org that publishes it. */
export interface OutboxEvent {
  readonly org: string
  readonly eventType: string
  readonly data: unknown
  readonly orderingKey?: string | null | undefined
  readonly correlationId?: string | null | undefined
  readonly dossierId?: string | null | undefined
  readonly metadata?: Readonly<Record<string, string>> | null | undefined
  readonly deliverAt?: string | null | undefined
  readonly expiresAt?: string | null | undefined
  /** The same key and the same event are published once. */
  readonly idempotencyKey?: string | undefined
}

export interface OutboxOptions {
  /** The schema of Posthaste's tables and functions, `POSTHASTE_SCHEMA`; posthaste by default. */
  readonly schema?: string | undefined
}

/** Sends a message with the transaction of `client`, and answers the message's id. */
export const send = (client: DatabaseClient, message: OutboxMessage, options?: OutboxOptions): Promise<string> =>
  call("send", client, message, options)

/** Publishes an event with the transaction of `client`, and answers the event's id. */
export const publish = (client: DatabaseClient, event: OutboxEvent, options?: OutboxOptions): Promise<string> =>
  call("publish", client, event, options)

const call = async (
  name: "send" | "publish",
  client: DatabaseClient,
  {
    org,
    idempotencyKey = null,
    ...request
  }: { readonly org: string; readonly idempotencyKey?: string | null | undefined },
  { schema = "posthaste" }: OutboxOptions = {}
): Promise<string> => {
  if (typeof org !== "string" || org === "") throw new TypeError(`${name} needs the org, a text that is not empty.`)
  const text = `select ${quoted(schema)}.${name}($1::text, $2::text::jsonb, $3::text)::text as id`
  const [row] = await databaseOf(client).run(text, [org, JSON.stringify(request), idempotencyKey])
  return row!["id"]!
}
