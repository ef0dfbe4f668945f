/**
 * `posthaste/inbox`: handles each message once, although it may arrive more than once.
 *
 * `once` notes the message's id in the transaction that does the work: both commit, or neither does. A message that is noted
 * already is not worked on again; one that another transaction works on right now is waited for. A table in your own database
 * holds the ids; it is made when it is missing, and forgets ids after a time.
 */
import {
  atomicallyWith,
  createTables,
  type Database,
  type DatabaseClient,
  databaseOf,
  quoted,
  type TransactionOf
} from "./database.ts"
import {
  type VerifiedWebhook,
  type VerifyOptions,
  verify,
  type WebhookHeaders,
  WebhookVerificationError
} from "./webhooks.ts"

export type { DatabaseClient, TransactionOf } from "./database.ts"

export interface InboxOptions {
  /** The table of the ids; posthaste_inbox by default. */
  readonly table?: string | undefined
  /** After how many days an id is forgotten; 30 by default. A replay that comes later is handled as a new message. */
  readonly keepDays?: number | undefined
}

export interface Incoming extends InboxOptions {
  /** Who handles the message. Each consumer handles it once. */
  readonly consumer: string
  /** Of a webhook, the header webhook-id; of an AMQP message, its messageId. */
  readonly messageId: string
}

const TABLE = "posthaste_inbox"
const KEEP_DAYS = 30
const PRUNED_AT_ONCE = 1_000
/** One call of so many also forgets what is old. */
const CALLS_PER_PRUNING = 100

/**
 * Runs `work` in a transaction that also notes the message, and answers what it answers; a duplicate is not worked on and
 * answers undefined. `work` is given the transaction. When `client` is in a transaction already, all of it happens there.
 */
export const once = async <Client extends DatabaseClient, A>(
  client: Client,
  { consumer, messageId, table = TABLE, keepDays = KEEP_DAYS }: Incoming,
  work: (transaction: TransactionOf<Client>) => Promise<A> | A
): Promise<A | undefined> => {
  for (const [name, value] of Object.entries({ consumer, messageId })) {
    if (typeof value !== "string" || value === "") throw new TypeError(`once needs ${name}, a text that is not empty.`)
  }
  return atomicallyWith(client, inboxTables(table), async (transaction) => {
    const [isNew] = await transaction.run(
      `insert into ${quoted(table)} (consumer, message_id) values ($1::text, $2::text) on conflict do nothing returning consumer`,
      [consumer, messageId]
    )
    if (isNew === undefined) return undefined
    if (++calls % CALLS_PER_PRUNING === 0) await forget(transaction, table, keepDays)
    return await work(transaction.client as TransactionOf<Client>)
  })
}

let calls = 0

/** Forgets ids that are older than `keepDays`, and answers how many. `once` does it now and then, too. */
export const prune = async (
  client: DatabaseClient,
  { table = TABLE, keepDays = KEEP_DAYS }: InboxOptions = {}
): Promise<number> => {
  for (let forgotten = 0; ; ) {
    const some = await atomicallyWith(client, inboxTables(table), (transaction) => forget(transaction, table, keepDays))
    forgotten += some
    if (some < PRUNED_AT_ONCE) return forgotten
  }
}

/** Waits for nobody: rows that another pruning has are left to it. */
const forget = async ({ run }: Database, table: string, keepDays: number): Promise<number> => {
  const [row] = await run(
    `with old as (
       select consumer, message_id from ${quoted(table)} where handled_at < now() - $1::text::float8 * interval '1 day'
       order by handled_at limit ${PRUNED_AT_ONCE} for update skip locked
     ), forgotten as (
       delete from ${quoted(table)} as inbox using old
       where inbox.consumer = old.consumer and inbox.message_id = old.message_id returning 1
     )
     select count(*)::text as forgotten from forgotten`,
    [String(keepDays)]
  )
  return Number(row!["forgotten"])
}

/** The table, for those who make their tables themselves. */
export const inboxTables = (table: string = TABLE): string => `
  create table if not exists ${quoted(table)} (
    consumer text not null,
    message_id text not null,
    handled_at timestamptz not null default now(),
    primary key (consumer, message_id)
  );
  create index if not exists ${quoted(`${table.split(".").at(-1)}_handled_at`)} on ${quoted(table)} (handled_at);`

/** Makes the table, for those whose application may not. */
export const createInbox = (client: DatabaseClient, table: string = TABLE): Promise<void> =>
  createTables(databaseOf(client), inboxTables(table))

export interface WebhookReceiverOptions<Client> extends InboxOptions, VerifyOptions {
  readonly client: Client
  readonly consumer: string
  /** The endpoint's secret or public key; several while it is being rotated. */
  readonly secret: string | ReadonlyArray<string>
}

export interface WebhookAnswer {
  readonly status: 204 | 401
  /** Why the request was not believed. */
  readonly reason?: string
}

/**
 * The receiver of webhooks: verifies a request, and handles its message once. Answer the request with the status: 204 when the
 * message is handled, now or before; 401 when it is not to be believed. When the work fails, so does the receiver: let the
 * server answer 500, and Posthaste sends the message again.
 */
export const webhookReceiver =
  <Client extends DatabaseClient, Payload = unknown>(
    { client, consumer, secret, toleranceSeconds, ...options }: WebhookReceiverOptions<Client>,
    work: (transaction: TransactionOf<Client>, webhook: VerifiedWebhook<Payload>) => Promise<unknown> | unknown
  ) =>
  async (headers: WebhookHeaders, body: string | Uint8Array | ArrayBuffer): Promise<WebhookAnswer> => {
    const webhook = await verify<Payload>(headers, body, secret, { toleranceSeconds }).catch((error: unknown) => {
      if (error instanceof WebhookVerificationError) return error
      throw error
    })
    if (webhook instanceof WebhookVerificationError) return { status: 401, reason: webhook.message }
    await once(client, { ...options, consumer, messageId: webhook.id }, (transaction) => work(transaction, webhook))
    return { status: 204 }
  }

/** A message as rabbitmq-client hands it to a consumer, or as amqplib does. */
export interface AmqpMessage {
  readonly messageId?: string | undefined
  readonly properties?: { readonly messageId?: string | undefined }
  readonly body?: unknown
  readonly content?: Uint8Array
}

/** A message that has no messageId can't be told from another; reject it into a dead-letter queue. */
export class NoMessageIdError extends Error {
  override readonly name = "NoMessageIdError"
}

/**
 * The consumer of a queue: handles each message once. Acknowledge it when the answer has come: with rabbitmq-client it is the
 * consumer's handler as it stands; with amqplib, `ack` after it.
 */
export const amqpConsumer =
  <Client extends DatabaseClient, Message extends AmqpMessage>(
    { client, consumer, ...options }: InboxOptions & { readonly client: Client; readonly consumer: string },
    work: (transaction: TransactionOf<Client>, message: Message) => Promise<unknown> | unknown
  ) =>
  async (message: Message): Promise<void> => {
    const messageId = message.messageId ?? message.properties?.messageId
    if (!messageId) throw new NoMessageIdError("The message has no messageId.")
    await once(client, { ...options, consumer, messageId }, (transaction) => work(transaction, message))
  }
