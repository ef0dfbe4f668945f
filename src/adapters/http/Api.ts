/** The API as data. Routes, decoding, the OpenAPI document and the docs page are made from it. */
import { OpenApi } from "effect/http-api"
import { rotatingSecretOf } from "../../application/destinations/secrets.ts"
import type { AnyChannel } from "../../application/ports/Channels.ts"
import { alertTargetsApi } from "./alerts/alertTargets.ts"
import { dossiersApi } from "./consents/dossiers.ts"
import { channelsApi } from "./destinations/channels.ts"
import { circuitsApi } from "./destinations/circuits.ts"
import { destinationsApi } from "./destinations/destinations.ts"
import { overviewApi } from "./destinations/overview.ts"
import { secretsApi } from "./destinations/secrets.ts"
import { erasuresApi } from "./erasures/erasures.ts"
import { eventsApi } from "./events/events.ts"
import { eventTypesApi } from "./events/eventTypes.ts"
import { apiKeysApi } from "./keys/apiKeys.ts"
import { auditApi } from "./log/audit.ts"
import { feedApi } from "./log/feed.ts"
import { projectionsApi } from "./log/projections.ts"
import { messagesApi } from "./messages/messages.ts"
import { parkedApi } from "./messages/parked.ts"
import { orgsApi } from "./orgs/orgs.ts"
import { healthApi } from "./processes/health.ts"
import { processesApi } from "./processes/processes.ts"
import { whatsAppReceiptsApi } from "./receipts/whatsAppReceipts.ts"
import { deadLettersApi } from "./replays/deadLetters.ts"
import { recoveryApi } from "./replays/recovery.ts"
import { base } from "./server/endpoints.ts"
import { finish } from "./server/openApiDocument.ts"

/** The groups that do not depend on the channels. */
export const Api = base
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
    parkedApi,
    healthApi
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Posthaste",
      version: "1",
      description:
        "Accepts outbound messages and gets them delivered. Accepted means stored: after a 2xx a message exists exactly once. Errors are application/problem+json.",
      transform: finish
    })
  )

/** The whole API, with the routes of each channel's destinations and secrets. */
export const apiWith = (channels: Iterable<AnyChannel>): typeof Api =>
  [...channels].reduce<typeof Api>((api, channel) => {
    const rotating = rotatingSecretOf(channel)
    const more = api.add(destinationsApi(channel))
    return (rotating === null ? more : more.add(secretsApi(channel, rotating))) as unknown as typeof Api
  }, Api)
