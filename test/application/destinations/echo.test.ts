/**
 * A channel that Posthaste does not have, made here from one record: everything that is made of records knows it. Where
 * this test needs a line in `src` to pass, a list of channels has come back.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { DateTime, Duration, Effect, Layer, Logger, ManagedRuntime, Redacted, Result, Schema } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import * as AjvEventSchemas from "../../../src/adapters/ajv/AjvEventSchemas.ts"
import * as PagerDutyAlerts from "../../../src/adapters/channels/pagerduty/PagerDutyAlerts.ts"
import * as WebhookAlerts from "../../../src/adapters/channels/webhook/WebhookAlerts.ts"
import * as MetaReceipts from "../../../src/adapters/channels/whatsapp/MetaReceipts.ts"
import * as HttpApiServer from "../../../src/adapters/http/HttpApiServer.ts"
import { alertOnFactsOnce } from "../../../src/application/alerts/alertOnFacts.ts"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import * as Senders from "../../../src/application/deliver/Senders.ts"
import { Freshness } from "../../../src/application/log/Freshness.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { AlertFormats } from "../../../src/application/ports/AlertFormats.ts"
import { Bodies } from "../../../src/application/ports/Bodies.ts"
import { type Channel, Channels, channelsOf } from "../../../src/application/ports/Channels.ts"
import { Circuits } from "../../../src/application/ports/Circuits.ts"
import type { DestinationSettings } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { commonSettings, type Setting, text } from "../../../src/application/ports/fields.ts"
import { Troubles } from "../../../src/application/processes/Troubles.ts"
import { judgeJournal } from "../../../src/application/truth/laws.ts"
import { evolve, initial } from "../../../src/domain/circuit/decider.ts"
import { stateOf } from "../../../src/domain/circuit/state.ts"
import { presets } from "../../../src/domain/delivery/retry.ts"
import { DestinationId, MessageId } from "../../../src/domain/ids.ts"
import { http, webhook } from "../../contracts/destinations/samples.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"

interface EchoSettings extends DestinationSettings {
  readonly voice: string
  readonly times: number
}

const heard: Array<string> = []

/** All there is to the channel. */
const echo: Channel<EchoSettings> = {
  name: "echo",
  journal: "cave",
  path: "caves",
  typeName: "Cave",
  article: "a",
  noun: "cave",
  example: {},
  settings: {
    voice: { schema: text(20) },
    times: { schema: Schema.Int, default: 2 },
    ...commonSettings
  } satisfies { readonly [Name in keyof EchoSettings]: Setting },
  secrets: {
    password: { schema: Schema.String, generate: () => Redacted.make("sesame"), replaceable: true }
  },
  ownSecretsMax: 0,
  callOf: () => null,
  faultsOf: ({ settings }) => (settings.voice === "silent" ? [{ field: "voice", reason: "must be heard" }] : []),
  addresseeOf: ({ to }) => Result.succeed({ to, destination: to }),
  addressField: "to",
  retry: presets.exponential,
  reachesPerson: true,
  dedupes: true,
  missing: "destination_missing",
  open: Effect.succeed({
    send: (message, { destination: { settings }, secrets }) =>
      Effect.sync(() => {
        for (let n = 0; n < settings.times; n++) {
          heard.push(`${settings.voice} with ${Redacted.value(secrets["password"]!)}: ${message.body}`)
        }
        return {
          outcome: { type: "Accepted", status: null, providerMessageId: null, delivered: true, durationMs: 1 },
          responseBody: null
        } as const
      })
  })
}

const OPERATOR = "an-operators-key-of-a-test"
const theirs = [Redacted.make(OPERATOR)]
const operatorKeys = () => theirs
const runtime = ManagedRuntime.make(
  HttpApiServer.layer({
    host: "127.0.0.1",
    port: 0,
    operatorKeys,
    encryptionKeys: [Redacted.make(new Uint8Array(32))]
  }).pipe(
    Layer.provideMerge(Senders.layer),
    Layer.provideMerge(Layer.succeed(Channels, channelsOf([webhook, http, echo]))),
    Layer.provideMerge([LogReader.layer, Freshness.layer, Troubles.layer]),
    Layer.provideMerge(MemoryPorts.layer),
    Layer.provideMerge(
      Layer.succeed(AlertFormats, { webhook: WebhookAlerts.format, pagerduty: PagerDutyAlerts.format })
    ),
    Layer.provideMerge([MetaReceipts.layer(new Map()), Fingerprints.layer, AjvEventSchemas.layer, Logger.layer([])])
  )
)
afterAll(() => runtime.dispose())
const url = await runtime.runPromise(HttpApiServer.url)

interface Answer {
  readonly status: number
  // Tests look into answers of any shape.
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  readonly json: any
}

const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
  const response = await fetch(`${url}${path.startsWith("/openapi") ? path : `/api/v1${path}`}`, {
    method,
    headers: {
      authorization: `Bearer ${OPERATOR}`,
      "x-org-id": "acme",
      ...(body === undefined ? {} : { "content-type": "application/json" })
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const answer = await response.text()
  return { status: response.status, json: answer === "" ? null : JSON.parse(answer) }
}

const cave = async (settings: object = {}): Promise<string> =>
  (await call("POST", "/caves", { voice: "deep", ...settings })).json.id

const send = (to: string, fields: object = {}) =>
  call("POST", "/outbound/messages", { channel: "echo", to, payloadJson: "hello", ...fields })

/** Its circuit opens, as a worker would open it. */
const open = Effect.fnUntraced(function* (destination: DestinationId) {
  const until = yield* DateTime.now
  const facts = [{ type: "CircuitOpened", failures: 5, until, openings: 1, error: null } as const]
  const after = stateOf(evolve(initial, facts[0]!), facts.length)
  yield* (yield* Circuits).append(destination, 0, facts, after, null)
})

const summariesTo = async (target: string): Promise<ReadonlyArray<string>> => {
  await runtime.runPromise(Effect.repeat(projectOnce(), { until: (projected) => projected === 0 }))
  const { items } = (await call("GET", `/outbound/messages?to=${target}`)).json
  const ids = items.map(({ id }: { readonly id: string }) => MessageId.make(id))
  const bodies = await runtime.runPromise(
    Effect.flatMap(Bodies, (all) => Effect.forEach(ids as ReadonlyArray<MessageId>, (id) => all.load(id)))
  )
  return bodies.map((body) => JSON.parse(body!).data.summary)
}

describe("a channel that is made from a record", () => {
  it("has routes to make, list, read, change and remove its destinations", async () => {
    const made = await call("POST", "/caves", { voice: "deep" })
    expect(made).toMatchObject({
      status: 201,
      json: { voice: "deep", times: 2, maxInFlight: 50, paused: false, version: 1, password: "sesame" }
    })
    const path = `/caves/${made.json.id}`
    const { password: _, ...shown } = made.json
    expect((await call("GET", path)).json).toEqual(shown)
    expect((await call("GET", "/caves")).json.items).toContainEqual(shown)
    expect((await call("PATCH", path, { times: 3, password: "open" })).json).toMatchObject({ times: 3, version: 2 })
    expect((await call("PATCH", path, { times: null })).json).toMatchObject({ times: 2 })
    for (const [body, field] of [
      [{ voice: "silent" }, "voice"],
      [{ times: "many" }, "times"],
      [{ colour: "red" }, "colour"]
    ] as const) {
      const refused = await call("PATCH", path, body)
      expect([refused.status, refused.json.errors[0].field]).toEqual([400, field])
    }
    expect((await call("DELETE", path)).status).toBe(204)
    expect((await call("GET", path)).status).toBe(404)
  })

  it("has routes to pause and resume them, and for their retry policy", async () => {
    const path = `/caves/${await cave()}`
    expect((await call("POST", `${path}/pause`)).json.paused).toBe(true)
    expect((await call("POST", `${path}/resume`)).json.paused).toBe(false)
    expect((await call("GET", `${path}/retry-config`)).json).toEqual(presets.exponential)
    const own = { strategy: "fixed", baseMs: 5 }
    expect((await call("PUT", `${path}/retry-config`, own)).json).toEqual(own)
    expect((await call("DELETE", `${path}/retry-config`)).status).toBe(204)
    expect((await call("GET", `${path}/retry-config`)).json).toEqual(presets.exponential)
  })

  it("stands in the OpenAPI document and among the channels there are", async () => {
    const { paths, components } = (await call("GET", "/openapi.json")).json
    const routes = Object.keys(paths).filter((path) => path.startsWith("/api/v1/caves"))
    const below = ["", "/{id}", "/{id}/enable", "/{id}/health", "/{id}/pause", "/{id}/resume", "/{id}/retry-config"]
    expect(routes.toSorted()).toEqual(below.map((path) => `/api/v1/caves${path}`).toSorted())
    expect(Object.keys(components.schemas)).toEqual(
      expect.arrayContaining(["Cave", "CreateCave", "ChangeCave", "NewCave"])
    )
    expect((await call("GET", "/channels")).json.items).toContainEqual({ name: "echo", noun: "cave", path: "/caves" })
    const unknown = await call("POST", "/outbound/messages", { channel: "fax", to: "x", payloadJson: 1 })
    expect(unknown.json.errors).toEqual([
      { field: "channel", reason: "must be one of the channels there are: webhook, http, echo" }
    ])
  })

  it("sends what is addressed to its destinations, and asks for consent first where it reaches a person", async () => {
    const id = await cave({ times: 1 })
    expect((await send("0198f0a2-3c52-7c43-8b1a-6d2f6f1f0a01")).json.errors).toEqual([
      { field: "to", reason: "is not the id of a cave of this org" }
    ])
    expect((await send(id, { dossierId: "case-1" })).status).toBe(403)
    await call("PUT", "/dossiers/case-1/consents/echo", { granted: true, source: "form" })
    const sent = await send(id, { dossierId: "case-1" })
    expect(sent.json).toMatchObject({ channel: "echo", status: "QUEUED", attemptsMax: 6 })
    const worker = dispatch({ worker: "w", concurrency: 4, lease: Duration.seconds(10), grace: Duration.seconds(1) })
    const read = Effect.promise(async () => (await call("GET", `/outbound/messages/${sent.json.id}`)).json.status)
    const delivered = Effect.repeat(Effect.delay(read, "10 millis"), { until: (status) => status === "DELIVERED" })
    await runtime.runPromise(Effect.scoped(Effect.andThen(worker, delivered)))
    expect(heard).toEqual(['deep with sesame: "hello"'])
  })

  it("is in the audit trail, and its journals can be verified", async () => {
    const id = await cave()
    await runtime.runPromise(Effect.repeat(projectOnce(), { until: (projected) => projected === 0 }))
    const { items } = (await call("GET", "/audit?operation=CREATED")).json
    expect(items).toContainEqual(
      expect.objectContaining({
        subject: { type: "cave", id },
        operation: "CREATED",
        actor: "operator"
      })
    )
    const facts = await runtime.runPromise(Effect.flatMap(EventStore, (store) => store.readAll(null, 10_000)))
    const journal = facts.filter(({ stream }) => stream === `cave-${id}`)
    expect(journal.map(({ name }) => name)).toEqual(["DestinationCreated@1"])
    expect(Result.isSuccess(judgeJournal(`cave-${id}`, journal, [echo.journal]))).toBe(true)
    const broken = [{ ...journal[0]!, name: "Nonsense@1" }]
    expect(judgeJournal(`cave-${id}`, broken, [echo.journal])).toMatchObject(Result.fail({ rule: "unreadable-fact" }))
  })

  it("has circuits, and alerts that call its destinations by their name", async () => {
    const target = (await call("POST", "/alert-targets", { type: "webhook", url: "https://ops.example" })).json.id
    const id = await cave()
    expect((await call("GET", `/circuits/${id}`)).json).toMatchObject({ id, status: "CLOSED" })
    expect((await call("POST", `/circuits/${id}/hold`)).json.status).toBe("HELD")
    expect((await call("GET", "/circuits?limit=200")).json.items).toContainEqual(
      expect.objectContaining({ id, status: "HELD" })
    )
    const opened = await cave()
    await runtime.runPromise(open(DestinationId.make(opened)))
    await runtime.runPromise(Effect.repeat(alertOnFactsOnce(), { until: (found) => !found }))
    expect(await summariesTo(target)).toEqual([expect.stringContaining(`The circuit of the cave ${opened} opened`)])
  })

  it("is known to the command line", async () => {
    const id = await cave()
    await call("POST", `/caves/${id}/pause`)
    const message = (await send(id)).json.id
    const env = { POSTHASTE_URL: url, POSTHASTE_OPERATOR_KEY: OPERATOR, POSTHASTE_ORG: "acme" }
    const cli = join(import.meta.dirname, "../../../src/cli.ts")
    const { stdout } = await promisify(execFile)(process.execPath, [cli, "show", message], { env })
    expect(stdout).toContain("echo to")
    expect(stdout).toContain("paused")
  })
})
