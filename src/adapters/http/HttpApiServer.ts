/**
 * Serves the API while the layer lives; its release stops accepting and finishes the requests under way. Provides the
 * `HttpServer`, which knows the bound address (`url`).
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer, type Redacted } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as Admission from "../../application/orgs/admission.ts"
import { Channels } from "../../application/ports/Channels.ts"
import type { Destinations } from "../../application/ports/Destinations.ts"
import type { Limits } from "../../application/ports/Orgs.ts"
import { Api, apiWith } from "./Api.ts"
import * as AlertTargetHandlers from "./alerts/alertTargets.ts"
import * as DossierHandlers from "./consents/dossiers.ts"
import * as ChannelHandlers from "./destinations/channels.ts"
import * as CircuitHandlers from "./destinations/circuits.ts"
import { layerOf as destinationHandlers } from "./destinations/destinations.ts"
import * as OverviewHandlers from "./destinations/overview.ts"
import { layerOf as secretHandlers } from "./destinations/secrets.ts"
import * as ErasureHandlers from "./erasures/erasures.ts"
import * as EventHandlers from "./events/events.ts"
import * as EventTypeHandlers from "./events/eventTypes.ts"
import * as ApiKeyHandlers from "./keys/apiKeys.ts"
import * as AuditHandlers from "./log/audit.ts"
import * as FeedHandlers from "./log/feed.ts"
import * as ProjectionHandlers from "./log/projections.ts"
import * as MessageHandlers from "./messages/messages.ts"
import * as ParkedHandlers from "./messages/parked.ts"
import * as OrgHandlers from "./orgs/orgs.ts"
import { pagesRoutes } from "./pages.ts"
import * as HealthHandlers from "./processes/health.ts"
import * as ProcessHandlers from "./processes/processes.ts"
import * as WhatsAppNoticeHandlers from "./receipts/whatsAppReceipts.ts"
import * as DeadLetterHandlers from "./replays/deadLetters.ts"
import * as RecoveryHandlers from "./replays/recovery.ts"
import * as Auth from "./server/auth.ts"
import { isIn, type Networks } from "./server/callers.ts"
import type { ConnectionLimits } from "./server/connections.ts"
import { cursorKeys } from "./server/cursor.ts"
import { makeServer, type Tls } from "./server/makeServer.ts"
import { type Answered, counted, type MetricsText, metricsRoute } from "./server/metrics.ts"
import { oftenAsked } from "./server/oftenAsked.ts"
import { Quotas, layer as quotasFor } from "./server/quotas.ts"
import { allowedMethodsOf, lastResort, refuseAddresses, refuseParameters, takesNoneOf } from "./server/routing.ts"

export interface HttpApiOptions {
  readonly host: string
  readonly port: number
  /** Null or absent: plain HTTP, for a proxy in front. */
  readonly tls?: Tls | null
  readonly operatorKeys: Auth.OperatorKeys
  readonly trustedProxies?: Networks | null
  /** The newest first; they sign cursors. */
  readonly encryptionKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>>
  readonly feed?: FeedHandlers.FeedOptions
  readonly connections?: Partial<Omit<ConnectionLimits, "isProxy">>
  /** For orgs without limits of their own; absent: none. */
  readonly orgLimits?: Limits
  /** The most days of retention that an org may be given; absent: no bound. */
  readonly retentionDaysMax?: number | null
  readonly answered?: Answered
  /** The text of `/metrics`, for an operator's key. */
  readonly metrics?: MetricsText
}

type RoutesOptions = Omit<HttpApiOptions, "host" | "port" | "tls" | "encryptionKeys" | "orgLimits">

const routesOf = (
  { operatorKeys, trustedProxies, feed, answered, metrics, retentionDaysMax }: RoutesOptions,
  channels: Channels["Service"]
) => {
  const api = apiWith(channels.values())
  return Layer.mergeAll(
    HttpApiBuilder.layer(api),
    pagesRoutes(api),
    metrics === undefined ? Layer.empty : metricsRoute(operatorKeys, metrics),
    HttpRouter.use((router) => router.addGlobalMiddleware(lastResort(allowedMethodsOf(api)))),
    HttpRouter.use((router) => router.addGlobalMiddleware(refuseParameters(takesNoneOf(api)))),
    HttpRouter.use((router) => router.addGlobalMiddleware(refuseAddresses(allowedMethodsOf(api)))),
    answered === undefined ? Layer.empty : HttpRouter.use((router) => router.addGlobalMiddleware(counted(answered)))
  ).pipe(
    Layer.provide(
      [...channels.values()].flatMap((channel) => [
        destinationHandlers(channel),
        secretHandlers(channel)
      ]) as unknown as [Layer.Layer<never, never, Destinations>]
    ),
    Layer.provide([
      oftenAsked(Api.groups.messages, ["send", "sendBatch"], MessageHandlers.layer),
      ErasureHandlers.layer,
      oftenAsked(Api.groups.events, ["publish", "publishBatch"], EventHandlers.layer),
      EventTypeHandlers.layer,
      DeadLetterHandlers.layer,
      ChannelHandlers.layer,
      OverviewHandlers.layer,
      RecoveryHandlers.layer,
      WhatsAppNoticeHandlers.layer,
      CircuitHandlers.layer,
      AlertTargetHandlers.layer,
      DossierHandlers.layer,
      AuditHandlers.layer,
      ApiKeyHandlers.layer,
      FeedHandlers.layerWith(feed ?? FeedHandlers.defaults),
      ProjectionHandlers.layer,
      ProcessHandlers.layer,
      OrgHandlers.layerWith(retentionDaysMax ?? null),
      ParkedHandlers.layer,
      HealthHandlers.layer
    ]),
    Layer.provide(Auth.layer({ operatorKeys, trustedProxies: trustedProxies ?? null }))
  )
}

export const routes = (options: RoutesOptions) =>
  Layer.unwrap(Effect.map(Channels, (channels) => routesOf(options, channels)))

const limitsOf = ({ connections, trustedProxies = null }: Pick<HttpApiOptions, "connections" | "trustedProxies">) => ({
  ...connections,
  isProxy: (address: string) => trustedProxies !== null && isIn(trustedProxies, address)
})

/** Services that a request adds are kept beside the map of all services up to this number; one more copies the map. */
const ADDED_MAX = 16

const withRoomToAdd = <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.effectContext(
    Effect.updateContext(Layer.build(layer), (services) =>
      Context.makeUnsafe(services.mapUnsafe, { maxDepth: ADDED_MAX })
    )
  )

export const layer = ({ host, port, tls = null, encryptionKeys, orgLimits = {}, ...options }: HttpApiOptions) =>
  withRoomToAdd(
    HttpRouter.serve(routes(options), {
      disableLogger: true,
      disableListenLog: true,
      // A path has one spelling (routing.ts).
      routerConfig: { caseSensitive: true, ignoreDuplicateSlashes: false }
    })
  ).pipe(
    Layer.provide([cursorKeys(encryptionKeys), Admission.layer(orgLimits)]),
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(Quotas, ({ enter }) =>
          NodeHttpServer.layer(() => makeServer(limitsOf(options), tls, enter), { host, port })
        )
      )
    ),
    Layer.provide(quotasFor(options.trustedProxies ?? null))
  )

export const url = Effect.map(HttpServer.HttpServer, ({ address }) => HttpServer.formatAddress(address))
