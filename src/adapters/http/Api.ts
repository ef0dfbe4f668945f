/**
 * The whole API as data. Routes, decoding, the OpenAPI document and the docs page all come from here, so
 * none of them can say something else than the others.
 */
import { HttpApi, OpenApi } from "effect/http-api"
import { alertTargetsApi } from "./alertTargetsApi.ts"
import { apiKeysApi } from "./apiKeysApi.ts"
import { auditApi } from "./auditApi.ts"
import { circuitsApi } from "./circuitsApi.ts"
import { deadLettersApi } from "./deadLettersApi.ts"
import { dossiersApi } from "./dossiersApi.ts"
import { endpointsApi } from "./endpointsApi.ts"
import { feedApi } from "./feedApi.ts"
import { healthApi } from "./healthApi.ts"
import { httpTargetsApi } from "./httpTargetsApi.ts"
import { messagesApi } from "./messagesApi.ts"
import { finish } from "./openApiDocument.ts"
import { projectionsApi } from "./projectionsApi.ts"
import { whatsAppAccountsApi } from "./whatsAppAccountsApi.ts"
import { whatsAppNoticesApi } from "./whatsAppNoticesApi.ts"

export const Api = HttpApi.make("posthaste")
  .add(
    messagesApi,
    deadLettersApi,
    endpointsApi,
    httpTargetsApi,
    whatsAppAccountsApi,
    whatsAppNoticesApi,
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
