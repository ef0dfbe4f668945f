/** Builds Posthaste from its settings. With setup/channels.ts the one place that knows every adapter. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Console, DateTime, Duration, Effect, Exit, Layer, Option, Redacted } from "effect"
import { HttpServer } from "effect/http"
import manifest from "../package.json" with { type: "json" }
import * as AjvEventSchemas from "./adapters/ajv/AjvEventSchemas.ts"
import { moveCommands } from "./adapters/api/moveCommands.ts"
import * as PagerDutyAlerts from "./adapters/channels/pagerduty/PagerDutyAlerts.ts"
import * as WebhookAlerts from "./adapters/channels/webhook/WebhookAlerts.ts"
import * as MetaReceipts from "./adapters/channels/whatsapp/MetaReceipts.ts"
import * as EventStoreDb from "./adapters/eventstoredb/EventStoreDb.ts"
import * as HttpApiServer from "./adapters/http/HttpApiServer.ts"
import { ready } from "./adapters/http/processes/health.ts"
import type { Tls } from "./adapters/http/server/makeServer.ts"
import { operationsServer, type Readiness } from "./adapters/http/server/operationsServer.ts"
import * as NodeRandom from "./adapters/node/NodeRandom.ts"
import * as OtlpTracing from "./adapters/otlp/OtlpTracing.ts"
import * as Metrics from "./adapters/prometheus/Metrics.ts"
import { consumeCommands } from "./adapters/rabbitmq/consumeCommands.ts"
import { publishFacts } from "./adapters/rabbitmq/publishFacts.ts"
import { sessions } from "./adapters/rabbitmq/session.ts"
import { forCommands, forFacts } from "./adapters/rabbitmq/topology.ts"
import { alertOnFacts } from "./application/alerts/alertOnFacts.ts"
import { dispatch } from "./application/deliver/dispatch.ts"
import * as Senders from "./application/deliver/Senders.ts"
import { disableFailing } from "./application/destinations/health.ts"
import { carryOutErasures } from "./application/erasures/erasures.ts"
import { Freshness } from "./application/log/Freshness.ts"
import { LogReader } from "./application/log/LogReader.ts"
import { keepProjections } from "./application/log/projections/keepProjections.ts"
import { beginFacts } from "./application/log/publishFacts.ts"
import { logWatcher } from "./application/logWatcher.ts"
import { endMessages } from "./application/maintenance/endMessages.ts"
import { lookForLost } from "./application/maintenance/lookForLost.ts"
import { readFigures } from "./application/maintenance/readFigures.ts"
import { retention } from "./application/maintenance/retention.ts"
import { watchConditions } from "./application/maintenance/watchConditions.ts"
import { applyWithdrawals } from "./application/messages/applyWithdrawals.ts"
import { AlertFormats } from "./application/ports/AlertFormats.ts"
import { Channels as ChannelRecords } from "./application/ports/Channels.ts"
import { EventStore } from "./application/ports/EventStore.ts"
import { Processes } from "./application/ports/Processes.ts"
import { both, Telemetry } from "./application/ports/Telemetry.ts"
import { heartbeat } from "./application/processes/heartbeat.ts"
import { Leadership, maintain } from "./application/processes/leader.ts"
import { Troubles } from "./application/processes/Troubles.ts"
import { applyReceipts, forgetReceipts } from "./application/receipts/applyReceipts.ts"
import { warnOfUnverifiedAccounts } from "./application/receipts/receiveReceipts.ts"
import { replayDeadLetters } from "./application/replays/replayDeadLetters.ts"
import { makeStoreHealth, StoreHealth, type StoreHealthService } from "./application/storeHealth.ts"
import { isMessage, retryParked } from "./application/truth/repair.ts"
import { banner, urlOf } from "./setup/banner.ts"
import { keptRenewed } from "./setup/certificate.ts"
import * as Channels from "./setup/channels.ts"
import { type Settings, settings } from "./setup/config.ts"
import { type DatabaseAndKeys, readOrCreateDatabaseAndKeys } from "./setup/databaseAndKeys.ts"
import { apiUrl } from "./setup/dataFiles.ts"
import * as Logs from "./setup/logs.ts"
import * as PostgresPorts from "./setup/postgresPorts.ts"
import { firstOrg, firstOrgKey, sampleEndpoint } from "./setup/sample.ts"
import { startupErrorOf } from "./setup/startupError.ts"
import { unknownVariables } from "./setup/unknownVariables.ts"
import type { Role } from "./setup/values.ts"

/** Time that a stop gives to sends under way before it abandons them visibly. */
const GRACE = Duration.seconds(20)

/** Time after which a stop ends as a crash would, which loses nothing. The documentation says 33 s. */
const STOPPED_WITHIN_MS = 32_000

const inBackground = <A, E, R>(loop: Effect.Effect<A, E, R>) => Layer.effectDiscard(Effect.forkScoped(loop))

const posthaste = (given: Settings, databaseAndKeys: DatabaseAndKeys, tls: Tls | null) => {
  const self = {
    id: `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`,
    host: hostname(),
    pid: process.pid,
    roles: [...given.roles],
    version: manifest.version,
    broker: given.amqpUrl !== null
  }

  const rules = {
    proxy: given.egressProxy,
    allowedNetworks: given.allowedNetworks,
    exemptions: databaseAndKeys.sample === null ? [] : [databaseAndKeys.sample]
  }

  const metrics = Metrics.make(given.metricsDestinations)
  const health = makeStoreHealth()

  const channels = Channels.layer(rules, {
    baseUrl: given.whatsappBaseUrl,
    codes: given.whatsappCodes,
    proxy: given.egressProxy
  })

  const alertFormats = Layer.succeed(AlertFormats, { webhook: WebhookAlerts.format, pagerduty: PagerDutyAlerts.format })

  const api = HttpApiServer.layer({
    host: given.host,
    port: given.port,
    tls,
    operatorKeys: databaseAndKeys.operatorKeys,
    trustedProxies: given.trustedProxies,
    connections: given.connections,
    orgLimits: given.orgLimits,
    retentionDaysMax: given.retentionDaysMax,
    encryptionKeys: databaseAndKeys.encryptionKeys,
    answered: metrics.answered,
    metrics: metrics.text
  })

  const worker = Layer.effectDiscard(
    dispatch({
      worker: self.id,
      concurrency: given.concurrency,
      lease: given.lease,
      grace: GRACE,
      circuit: given.circuit
    })
  ).pipe(
    Layer.provide(Senders.layer),
    Layer.merge(inBackground(replayDeadLetters)),
    Layer.merge(inBackground(carryOutErasures)),
    Layer.merge(inBackground(applyWithdrawals)),
    Layer.merge(inBackground(applyReceipts)),
    Layer.merge(Layer.effectDiscard(Effect.forkScoped(Effect.ignore(retryParked(isMessage)))))
  )

  const projector = Layer.mergeAll(inBackground(keepProjections), inBackground(alertOnFacts))

  const broker = given.amqpUrl === null ? null : { url: given.amqpUrl, name: `posthaste ${hostname()} ${process.pid}` }
  /** Whether the broker is away, by direction: commands in, facts out. */
  const awayFrom = new Map<string, boolean>()
  const overBroker = <E, R>(task: string, needed: typeof forFacts, work: Parameters<typeof sessions<E, R>>[3]) =>
    sessions(broker!, task, needed, work, (away) => void awayFrom.set(task, away))
  const relay = Layer.merge(
    inBackground(moveCommands),
    broker === null
      ? Layer.empty
      : Layer.mergeAll(
          inBackground(overBroker("commands", forCommands, consumeCommands)),
          Layer.effectDiscard(
            Effect.andThen(beginFacts(given.factsFrom), Effect.forkScoped(overBroker("facts", forFacts, publishFacts)))
          )
        )
  )

  const maintenance = Layer.mergeAll(
    inBackground(Effect.flatMap(watchConditions, maintain)),
    inBackground(maintain(endMessages)),
    inBackground(maintain(lookForLost)),
    inBackground(maintain(disableFailing)),
    inBackground(maintain(forgetReceipts)),
    inBackground(
      maintain(
        retention({ keep: given.retention, keepDead: given.deadLetterRetention, daysMax: given.retentionDaysMax })
      )
    ),
    inBackground(maintain(readFigures(self.id, given.metricsDestinations)))
  )

  const watched = Layer.effectDiscard(
    Effect.gen(function* () {
      const names = [...(yield* ChannelRecords).keys()]
      const { connections } = yield* Processes
      const fetched = metrics.watch([...given.roles], manifest.version, names, connections)
      const brokerAway = () => (awayFrom.size === 0 ? null : [...awayFrom.values()].includes(true))
      yield* Effect.forkScoped(heartbeat({ self, brokerAway, fetched }))
      if (given.metricsPort === null) return
      const { host, metricsPort: port } = given
      const opened = yield* operationsServer({ host, port, metrics: metrics.text, ready: yield* readinessOf(health) })
      yield* Effect.logInfo("metrics and health are served").pipe(Effect.annotateLogs({ url: urlOf(host, opened) }))
    })
  )

  const telemetry = Layer.mergeAll(
    Layer.effect(
      Telemetry,
      Effect.map(logWatcher, (log) => both(metrics.watcher, log))
    ),
    Layer.succeed(StoreHealth, health),
    OtlpTracing.layer({ ...given.tracing, version: manifest.version })
  )

  const inRole = <E, R>(role: Role, layer: Layer.Layer<never, E, R>): Layer.Layer<never, E, R> =>
    given.roles.has(role) ? layer : Layer.empty

  // Lower layers start earlier and stop later, so that the worker can settle its messages.
  return announce(given, databaseAndKeys).pipe(
    Layer.provide([
      inRole("worker", worker),
      inRole("relay", relay),
      inRole("projector", projector),
      Layer.merge(maintenance, watched).pipe(Layer.provide(Leadership.layer))
    ]),
    Layer.provideMerge(inRole("api", api)),
    Layer.provide([LogReader.layer, Freshness.layer, Troubles.layer]),
    Layer.provide(metrics.timedStores),
    Layer.provide(storeOf(given, databaseAndKeys)),
    Layer.provide(telemetry),
    Layer.provide([
      NodeRandom.layer,
      AjvEventSchemas.layer,
      channels,
      alertFormats,
      MetaReceipts.layer(given.whatsappCodes)
    ])
  )
}

/** Asks the store each time: other parts notice an outage at their next use. */
const readinessOf = (health: StoreHealthService) =>
  Effect.map(Effect.all([EventStore, Troubles]), ([store, installation]): Effect.Effect<Readiness> => {
    const asked = ready.pipe(
      Effect.provideService(EventStore, store),
      Effect.andThen(installation.now),
      Effect.map((troubles) => ({ status: "ok" as const, troubles })),
      Effect.catch((error) =>
        Effect.as(health.failed("answering /readyz", error), { status: "unavailable" as const, troubles: [] })
      )
    )
    return Effect.map(asked, ({ status, troubles }) => {
      const outage = health.outage()
      const parts = [...(outage?.parts ?? [])].map(([part, sinceMs]) => ({
        part,
        reason: outage!.reason,
        since: DateTime.formatIso(DateTime.makeUnsafe(sinceMs))
      }))
      return { status, parts, ...(troubles.length > 0 && { troubles }) }
    })
  })

/** EVENTSTORE_URL moves the streams of messages; the rest stays in PostgreSQL. */
const storeOf = ({ eventStoreUrl, schema }: Settings, { url, encryptionKeys }: DatabaseAndKeys) => {
  const [encryptionKey, ...olderKeys] = encryptionKeys
  const postgres = { url, schema, encryptionKey: encryptionKey!, olderKeys }
  return eventStoreUrl === null
    ? PostgresPorts.layer(postgres)
    : PostgresPorts.layerOverStreams(postgres).pipe(Layer.provide(EventStoreDb.layer(eventStoreUrl, "wait")))
}

/** Remembers the API's address for the command line; true when there was none. */
const isFirstStart = Effect.fnUntraced(function* (dataDir: string, url: string) {
  const file = apiUrl(dataDir)
  const known = yield* file.read
  if (known !== url) yield* file.write(url)
  return known === null
})

const announce = (given: Settings, { sample, operatorKeys }: DatabaseAndKeys) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const server = yield* Effect.serviceOption(HttpServer.HttpServer)
      const url = Option.match(server, {
        onNone: () => null,
        onSome: ({ address }) =>
          "port" in address ? urlOf(given.host, address.port, given.certificate?.first.leaf ?? null) : null
      })
      const first =
        sample === null
          ? null
          : {
              dataDir: sample.dataDir,
              isFirst: url !== null && (yield* isFirstStart(sample.dataDir, url)),
              operatorKey: given.operatorKeys === null ? Redacted.value(operatorKeys()[0]!) : null,
              org: firstOrg,
              orgKey: yield* firstOrgKey(sample.dataDir),
              endpointId: yield* sampleEndpoint(sample),
              receiverUrl: sample.url
            }
      yield* Console.log(
        banner(url, [...given.roles], first, { cwd: process.cwd(), home: join(import.meta.dirname, "..") })
      )
      yield* Effect.addFinalizer(() => Effect.sync(endInTime))
      yield* warnOfUnverifiedAccounts
    })
  )

const endInTime = () => {
  setTimeout(() => {
    console.error(
      `posthaste: it did not stop within ${STOPPED_WITHIN_MS / 1000} s and was ended; its messages are taken over as after a crash`
    )
    process.exit(1)
  }, STOPPED_WITHIN_MS).unref()
}

const main = Layer.unwrap(
  Effect.gen(function* () {
    const given = yield* settings
    for (const line of unknownVariables(Object.keys(process.env))) yield* Effect.logWarning(line)
    const { certificate } = given
    const tls = certificate === null ? null : yield* keptRenewed(certificate, certificate.first)
    return posthaste(given, yield* readOrCreateDatabaseAndKeys(given), tls)
  })
)

const reportStartupError = (cause: Cause.Cause<unknown>) =>
  Cause.hasInterruptsOnly(cause) ? Effect.void : Console.error(startupErrorOf(cause))

/**
 * V8's heap flags. Pretenuring makes the successors of a burst's objects old, where they keep garbage alive: 100 MB in
 * 15,000 requests instead of 1 MB, three times the scavenges' time. A growing percent of 150 collects at 2.5 times the
 * live size: 0.85 GB with bodies of 200 kB, 1.3 GB by default; 100 took 0.69 GB and made listing slower.
 */
const keepHeapSmall = Effect.sync(() => {
  setFlagsFromString("--no-allocation-site-pretenuring")
  setFlagsFromString("--heap-growing-percent=150")
})

export const serve = Effect.andThen(keepHeapSmall, Layer.launch(main.pipe(Layer.provide(Logs.layer))))

if (import.meta.main) {
  NodeRuntime.runMain(Effect.tapCause(serve, reportStartupError), {
    disableErrorReporting: true,
    teardown: (exit, end) => end(Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) ? 1 : 0)
  })
}
