/**
 * The API as data. Routes, decoding, the OpenAPI document and the docs page are all made from it, so they always agree.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { rotatingSecretOf } from "../../../application/destinations/secrets.ts"
import type { AnyChannel } from "../../../application/ports/Channels.ts"
import { alertTargetsApi } from "../alerts/alertTargetsApi.ts"
import { dossiersApi } from "../consents/dossiersApi.ts"
import { channelsApi } from "../destinations/channelsApi.ts"
import { circuitsApi } from "../destinations/circuitsApi.ts"
import { destinationsApi } from "../destinations/destinationsApi.ts"
import { overviewApi } from "../destinations/overviewApi.ts"
import { recoveryApi } from "../destinations/recoveryApi.ts"
import { secretsApi } from "../destinations/secretsApi.ts"
import { erasuresApi } from "../erasures/erasuresApi.ts"
import { eventsApi } from "../events/eventsApi.ts"
import { eventTypesApi } from "../events/eventTypesApi.ts"
import { apiKeysApi } from "../keys/apiKeysApi.ts"
import { auditApi } from "../log/auditApi.ts"
import { feedApi } from "../log/feedApi.ts"
import { projectionsApi } from "../log/projectionsApi.ts"
import { messagesApi } from "../messages/messagesApi.ts"
import { setAsideApi } from "../messages/setAsideApi.ts"
import { orgsApi } from "../orgs/orgsApi.ts"
import { processesApi } from "../processes/processesApi.ts"
import { whatsAppReceiptsApi } from "../receipts/whatsAppReceiptsApi.ts"
import { deadLettersApi } from "../replays/deadLettersApi.ts"
import { healthApi } from "./healthApi.ts"
import { finish } from "./openApiDocument.ts"

/** The groups that do not depend on the channels. */
export const Api = HttpApi.make("posthaste")
  .add(
    messagesApi,
    eventsApi,
    eventTypesApi,
    deadLettersApi,
    erasuresApi,
    whatsAppReceiptsApi,
    channelsApi,
    overviewApi,
    circuitsApi,
    recoveryApi,
    alertTargetsApi,
    dossiersApi,
    auditApi,
    apiKeysApi,
    feedApi,
    projectionsApi,
    processesApi,
    orgsApi,
    setAsideApi
  )
  .prefix("/api/v1")
  .add(healthApi)
  // Unknown parameters are refused: a misspelt filter would otherwise list everything.
  .annotate(HttpApi.QueryParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotate(HttpApi.HeadersParseOptions, { errors: "all" })
  .annotateMerge(
    OpenApi.annotations({
      title: "Posthaste",
      version: "1",
      description:
        "Accepts outbound messages and gets them delivered. Accepted means stored: after a 2xx a message exists exactly once. Errors are application/problem+json.",
      transform: finish
    })
  )

/** The whole API, with the routes of each channel's destinations and of their secrets. */
export const apiWith = (channels: Iterable<AnyChannel>): typeof Api =>
  [...channels].reduce<typeof Api>((api, channel) => {
    const rotating = rotatingSecretOf(channel)
    const more = api.add(destinationsApi(channel))
    return (rotating === null ? more : more.add(secretsApi(channel, rotating))) as unknown as typeof Api
  }, Api)
