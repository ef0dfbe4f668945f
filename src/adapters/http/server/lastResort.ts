/**
 * The answers where no handler answered: an unknown path, a wrong method, a query or header that does not decode, and
 * our own bugs. For a bug the caller only gets the number under which it was logged.
 */
import { randomUUID } from "node:crypto"
import { Cause, Effect } from "effect"
import { HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { faultsOf } from "../../api/decoding.ts"
import type { AllowedMethods } from "./allowedMethods.ts"
import { internal, invalidFields, methodNotAllowed, notFound, type Problem, toResponse } from "./problem.ts"

export const lastResort =
  (allowedMethods: AllowedMethods) =>
  <E, R>(
    routes: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.catchCause(routes, (cause) =>
      // The caller is gone or the server stops: there is no connection to answer on.
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
      if (methods.length === 0) {
        return notFound("There is no such path: those of the API begin with /api/v1, and /docs lists them.")
      }
      // An allowed method without a handler has a path that is no path: an id too long for the router.
      return methods.includes(method) ? notFound() : methodNotAllowed(methods)
    })
  }
  if (HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders") {
    return Effect.succeed(invalidFields(faultsOf(error.cause.issue, "")))
  }
  const requestId = randomUUID()
  return Effect.as(Effect.logError(`request ${requestId} met a bug`, cause), internal(requestId))
}
