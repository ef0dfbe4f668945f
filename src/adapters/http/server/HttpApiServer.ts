/**
 * Serves the API. While the layer lives the server listens; when it is released the server stops
 * accepting, finishes what is in flight and closes.
 *
 * It needs the application's ports, `EndpointPolicy`, `HttpTargetPolicy`, `AlertFormats` and `WhatsAppReceipts` among them. It provides the `HttpServer`, which knows the
 * bound address (`url`).
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, type Redacted } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import * as AlertTargetHandlers from "../alerts/alertTargets.ts"
import * as DossierHandlers from "../consents/dossiers.ts"
import * as CircuitHandlers from "../destinations/circuits.ts"
import * as EndpointHandlers from "../destinations/endpoints.ts"
import * as HttpTargetHandlers from "../destinations/httpTargets.ts"
import * as WhatsAppAccountHandlers from "../destinations/whatsAppAccounts.ts"
import * as ApiKeyHandlers from "../keys/apiKeys.ts"
import * as AuditHandlers from "../log/audit.ts"
import * as FeedHandlers from "../log/feed.ts"
import * as ProjectionHandlers from "../log/projections.ts"
import * as MessageHandlers from "../messages/messages.ts"
import * as WhatsAppNoticeHandlers from "../receipts/whatsAppReceipts.ts"
import * as DeadLetterHandlers from "../replays/deadLetters.ts"
import { Api } from "./Api.ts"
import * as Auth from "./auth.ts"
import { makeServer } from "./connections.ts"
import * as HealthHandlers from "./health.ts"
import { lastResort } from "./lastResort.ts"

export interface HttpApiOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly operatorKey: Redacted.Redacted
  readonly feed?: FeedHandlers.FeedOptions
}

/** The docs page brings all it shows with it: it works where there is no internet. */
const docs = HttpApiScalar.layer(Api, { path: "/docs", scalar: { withDefaultFonts: false } })

export const routes = ({ operatorKey, feed }: Pick<HttpApiOptions, "operatorKey" | "feed">) =>
  Layer.mergeAll(
    HttpApiBuilder.layer(Api, { openapiPath: "/openapi.json" }),
    docs,
    HttpRouter.use((router) => router.addGlobalMiddleware(lastResort))
  ).pipe(
    Layer.provide([
      MessageHandlers.layer,
      DeadLetterHandlers.layer,
      EndpointHandlers.layer,
      HttpTargetHandlers.layer,
      WhatsAppAccountHandlers.layer,
      WhatsAppNoticeHandlers.layer,
      CircuitHandlers.layer,
      AlertTargetHandlers.layer,
      DossierHandlers.layer,
      AuditHandlers.layer,
      ApiKeyHandlers.layer,
      FeedHandlers.layerWith(feed ?? FeedHandlers.defaults),
      ProjectionHandlers.layer,
      HealthHandlers.layer
    ]),
    Layer.provide(Auth.layer(operatorKey))
  )

export const layer = ({ host, port, ...options }: HttpApiOptions) =>
  HttpRouter.serve(routes(options), { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(makeServer, { host, port }))
  )

export const url = Effect.map(HttpServer.HttpServer, ({ address }) => HttpServer.formatAddress(address))
