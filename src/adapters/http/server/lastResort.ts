/**
 * What is answered when no handler answered: a path that leads nowhere, a wrong method, a query or header
 * that does not decode, and our own bugs. Of a bug the caller learns only the number under which it was
 * logged.
 */
import { randomUUID } from "node:crypto"
import { Cause, Effect } from "effect"
import { HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import type { AllowedMethods } from "./allowedMethods.ts"
import { internal, invalidFields, methodNotAllowed, notFound, type Problem, toResponse } from "./problem.ts"
import { faultsOf } from "./requestBody.ts"

export const lastResort =
  (allowedMethods: AllowedMethods) =>
  <E, R>(
    routes: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.catchCause(routes, (cause) =>
      // The caller went away or we are being stopped: there is nobody to answer.
      Cause.hasInterruptsOnly(cause)
        ? Effect.failCause(cause)
        : Effect.map(problemFor(cause, allowedMethods), toResponse)
    )

const problemFor = (
  cause: Cause.Cause<unknown>,
  allowedMethods: AllowedMethods
): Effect.Effect<Problem, never, HttpServerRequest.HttpServerRequest> => {
  const error = Cause.squash(cause)
  if (error instanceof HttpServerError.HttpServerError && error.reason._tag === "RouteNotFound") {
    return Effect.map(HttpServerRequest.HttpServerRequest, ({ url, method }) => {
      const methods = allowedMethods(url.split("?", 1)[0]!)
      // A method that is allowed here got this far because the path is no path after all: an id too long to be one.
      return methods.length === 0 || methods.includes(method) ? notFound() : methodNotAllowed(methods)
    })
  }
  if (HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders") {
    return Effect.succeed(invalidFields(faultsOf(error.cause.issue, "")))
  }
  const requestId = randomUUID()
  return Effect.as(Effect.logError(`request ${requestId} met a bug`, cause), internal(requestId))
}
