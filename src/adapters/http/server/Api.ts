/**
 * The whole API as data. Routes, decoding, the OpenAPI document and the docs page all come from here, so
 * none of them can say something else than the others.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { alertTargetsApi } from "../alerts/alertTargetsApi.ts"
import { dossiersApi } from "../consents/dossiersApi.ts"
import { circuitsApi } from "../destinations/circuitsApi.ts"
import { endpointsApi } from "../destinations/endpointsApi.ts"
import { httpTargetsApi } from "../destinations/httpTargetsApi.ts"
import { whatsAppAccountsApi } from "../destinations/whatsAppAccountsApi.ts"
import { apiKeysApi } from "../keys/apiKeysApi.ts"
import { auditApi } from "../log/auditApi.ts"
import { feedApi } from "../log/feedApi.ts"
import { projectionsApi } from "../log/projectionsApi.ts"
import { messagesApi } from "../messages/messagesApi.ts"
import { whatsAppReceiptsApi } from "../receipts/whatsAppReceiptsApi.ts"
import { deadLettersApi } from "../replays/deadLettersApi.ts"
import { healthApi } from "./healthApi.ts"
import { finish } from "./openApiDocument.ts"

export const Api = HttpApi.make("posthaste")
  .add(
    messagesApi,
    deadLettersApi,
    endpointsApi,
    httpTargetsApi,
    whatsAppAccountsApi,
    whatsAppReceiptsApi,
    circuitsApi,
    alertTargetsApi,
    dossiersApi,
    auditApi,
    apiKeysApi,
    feedApi,
    projectionsApi,
    healthApi
  )
  // A misspelt filter would otherwise list everything.
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
