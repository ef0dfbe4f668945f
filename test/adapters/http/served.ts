/**
 * A real server on a free port over memory adapters, and a client that speaks plain HTTP to it. Nothing in
 * between is replaced, the log is kept to look into, and `wrap` puts something in front of the event store where a test needs a bad day.
 */
import { randomUUID } from "node:crypto"
import { Cause, DateTime, Effect, Layer, Logger, ManagedRuntime, Redacted } from "effect"
import { afterAll } from "vitest"
import * as AjvEventSchemas from "../../../src/adapters/ajv/AjvEventSchemas.ts"
import type { HttpTargetSettings } from "../../../src/adapters/channels/http/settings.ts"
import * as PagerDutyAlerts from "../../../src/adapters/channels/pagerduty/PagerDutyAlerts.ts"
import type { EndpointSettings } from "../../../src/adapters/channels/webhook/settings.ts"
import { generateSecret } from "../../../src/adapters/channels/webhook/signature.ts"
import * as WebhookAlerts from "../../../src/adapters/channels/webhook/WebhookAlerts.ts"
import * as MetaReceipts from "../../../src/adapters/channels/whatsapp/MetaReceipts.ts"
import type { WhatsAppSettings } from "../../../src/adapters/channels/whatsapp/settings.ts"
import * as HttpApiServer from "../../../src/adapters/http/HttpApiServer.ts"
import type { FeedOptions } from "../../../src/adapters/http/log/feed.ts"
import { entryOf } from "../../../src/application/entry.ts"
import { Freshness } from "../../../src/application/log/Freshness.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { AlertFormats } from "../../../src/application/ports/AlertFormats.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import {
  type Channel,
  Channels,
  channelsOf,
  type DestinationDraft,
  OwnershipNotKnown
} from "../../../src/application/ports/Channels.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { Processes } from "../../../src/application/ports/Processes.ts"
import { Troubles } from "../../../src/application/processes/Troubles.ts"
import { applyReceiptsOnce } from "../../../src/application/receipts/applyReceipts.ts"
import { MessageId } from "../../../src/domain/ids.ts"
import { replay } from "../../../src/domain/message/decider.ts"
import type { MessageFact } from "../../../src/domain/message/facts.ts"
import { http, webhook, whatsapp } from "../../contracts/destinations/samples.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

export const OPERATOR = "an operator's key"
const theirs = [Redacted.make(OPERATOR)]
const operatorKeys = () => theirs

/** The channels there are; settings are judged by the words in them, so that a test can provoke each refusal. */
const webhookFaultsOf = ({ settings, secrets, given }: DestinationDraft<EndpointSettings>) => [
  ...(given.includes("url") && settings.url.includes("forbidden") ? [forbidden("url")] : []),
  ...("forbidden" in settings.headers ? [{ field: "headers", reason: "must not hold forbidden" }] : []),
  ...(secrets["secret"]?.startsWith("whs") === false ? [{ field: "secret", reason: "must start with whsec_" }] : [])
]

const channels = channelsOf([
  {
    ...webhook,
    faultsOf: (draft) => [
      ...webhook.faultsOf(draft).filter(({ field }) => field.endsWith("Certificate")),
      ...webhookFaultsOf(draft)
    ],
    secrets: {
      ...webhook.secrets,
      secret: {
        ...webhook.secrets["secret"]!,
        generate: ({ signature }) =>
          signature === "ed25519" ? generateSecret(signature) : Redacted.make("whsec_made-by-the-policy")
      }
    }
  } satisfies Channel<EndpointSettings>,
  {
    ...http,
    faultsOf: ({ settings, secretNames, secrets }) => [
      ...(settings.url.includes("forbidden") ? [forbidden("url")] : []),
      ...Object.values(settings.headers)
        .filter((value) => value.startsWith("{{") && !secretNames.includes(value.slice(2, -2)))
        .map(() => ({ field: "headers", reason: "must name a secret there is" })),
      ...Object.entries(secrets)
        .filter(([, value]) => value.startsWith("forbidden"))
        .map(([name]) => forbidden(`secrets.${name}`))
    ]
  } satisfies Channel<HttpTargetSettings>,
  {
    ...whatsapp,
    ownership: (_, { accessToken }) => {
      if (accessToken === "unanswered") return Effect.fail(new OwnershipNotKnown({ message: "Meta did not answer." }))
      return Effect.succeed(accessToken?.startsWith("forbidden") ? [forbidden("accessToken")] : [])
    }
  } satisfies Channel<WhatsAppSettings>
])

const forbidden = (field: string) => ({ field, reason: "must not be forbidden" })

const alertFormats = Layer.succeed(AlertFormats, {
  webhook: WebhookAlerts.format,
  pagerduty: PagerDutyAlerts.format
})

type Store = EventStore["Service"]

const storeIn = (wrap: (store: Store) => Store) =>
  Layer.effect(EventStore, Effect.map(EventStore, wrap)).pipe(Layer.provideMerge(MemoryPorts.layer))

export interface Json {
  // Tests look into answers of any shape.
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  readonly [field: string]: any
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Json
}

export interface Call {
  readonly key?: string | null
  readonly org?: string | null
  readonly headers?: Record<string, string>
  /** A string is sent as it is, anything else as JSON. */
  readonly body?: unknown
}

export const start = async (
  wrap: (store: Store) => Store = (store) => store,
  feed?: FeedOptions,
  connections?: HttpApiServer.HttpApiOptions["connections"]
) => {
  const logged: Array<string> = []
  const log = Logger.make(({ message, cause }) => {
    logged.push([message, Cause.pretty(cause)].flat().map(String).join(" "))
  })
  const runtime = ManagedRuntime.make(
    HttpApiServer.layer({
      host: "127.0.0.1",
      port: 0,
      operatorKeys,
      retentionDaysMax: 40,
      encryptionKeys: [Redacted.make(new Uint8Array(32).fill(1))],
      ...(feed && { feed }),
      ...(connections && { connections })
    }).pipe(
      // Nearer than those of the store.
      Layer.provideMerge(Layer.succeed(Channels, channels)),
      Layer.provideMerge([LogReader.layer, Freshness.layer, Troubles.layer]),
      Layer.provideMerge(storeIn(wrap)),
      Layer.provideMerge(MetaReceipts.layer(new Map())),
      Layer.provide([Fingerprints.layer, AjvEventSchemas.layer, alertFormats, Logger.layer([log])])
    )
  )
  const url = await runtime.runPromise(HttpApiServer.url)
  afterAll(() => runtime.dispose())

  /** As the operator for the org `acme`, unless the call says otherwise. */
  const call = async (method: string, path: string, { key, org, headers, body }: Call = {}): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key ?? OPERATOR}` }),
        ...(org === null ? {} : { "x-org-id": org ?? "acme" }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: text === "" ? {} : (JSON.parse(text) as Json)
    }
  }

  const endpoint = async (org = "acme", settings: object = {}): Promise<string> =>
    (await call("POST", "/api/v1/webhook-endpoints", { org, body: { url: "https://shop.example/hook", ...settings } }))
      .json["id"]

  const send = (request: object, { headers, ...rest }: Call = {}) =>
    call("POST", "/api/v1/outbound/messages", { ...rest, headers: headers ?? {}, body: request })

  /** Appends what a worker would have appended. */
  const append = (id: string, facts: ReadonlyArray<MessageFact>, response: string | null = null) =>
    runtime.runPromise(
      Effect.gen(function* () {
        const store = yield* EventStore
        const messageId = MessageId.make(id)
        const stream = yield* store.load(messageId)
        const before = replay(stream.facts.map(({ fact }) => fact))
        const { entry } = entryOf(messageId, before, stream.version, facts, yield* DateTime.now, {
          response:
            response === null
              ? null
              : { epoch: before.progress.epoch, attempt: before.progress.attempt, body: response, headers: null }
        })
        return yield* store.append([entry])
      })
    )

  /** The exact text that would be delivered. */
  const bodyOf = (id: string) => runtime.runPromise(Effect.flatMap(Bodies, (bodies) => bodies.load(MessageId.make(id))))

  const project = () => runtime.runPromise(projectOnce())

  /** Applies the receipts that are due; how many. */
  const applyReceipts = () => runtime.runPromise(Effect.provide(applyReceiptsOnce(), Logger.layer([log])))

  /** As a process that sends messages would say that it lives. */
  const startWorker = (roles = ["worker"]) =>
    runtime.runPromise(
      Effect.flatMap(Processes, ({ beat }) =>
        beat({
          ...{ id: randomUUID(), host: "here", pid: 1, roles, version: "1" },
          ...{ broker: false, brokerAway: null, clockOffsetMs: null }
        })
      )
    )

  const makeKey = async (orgId: string): Promise<string> =>
    (await call("POST", "/api/v1/api-keys", { org: null, body: { orgId, name: "test" } })).json["key"]

  return {
    url,
    call,
    endpoint,
    send,
    append,
    bodyOf,
    project,
    applyReceipts,
    makeKey,
    startWorker,
    logged,
    /** Asks the ports themselves. */
    run: <A, E>(effect: Effect.Effect<A, E, ManagedRuntime.ManagedRuntime.Services<typeof runtime>>) =>
      runtime.runPromise(effect),
    stop: () => runtime.dispose()
  }
}

export const field = (answer: Answer): ReadonlyArray<string> =>
  (answer.json["errors"] as ReadonlyArray<{ field: string }>).map((error) => error.field)
