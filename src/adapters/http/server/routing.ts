/**
 * What a request meets around the router: a path must have one spelling, so that a proxy that allows some paths and
 * Posthaste agree about which it is; a route without parameters refuses them; and what no handler answers is answered
 * here, a wrong method (405) apart from an unknown path (404).
 */
import { randomUUID } from "node:crypto"
import { Cause, Context, Effect, Result } from "effect"
import { HttpServerError, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiError } from "effect/http-api"
import { FAULTS_MAX, faultsOf } from "../../api/decoding.ts"
import { internal, invalidFields, methodNotAllowed, notFound, type Problem, toResponse } from "./problem.ts"

type Served<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly query: unknown
  readonly annotations: Context.Context<never>
}

interface Routes {
  readonly groups: Readonly<Record<string, { readonly endpoints: Readonly<Record<string, Endpoint>> }>>
}

const pages = ["/", "/openapi.json", "/docs", "/metrics"]

type AllowedMethods = (path: string) => ReadonlyArray<string>

const patternsOf = ({ groups }: Routes) =>
  Object.values(groups).flatMap(({ endpoints }) =>
    Object.values(endpoints).map((endpoint) => ({
      endpoint,
      pattern: new RegExp(`^${endpoint.path.replace(/:[a-z]+/gi, "[^/]+")}/?$`)
    }))
  )

export const allowedMethodsOf = (api: Routes): AllowedMethods => {
  const routes = patternsOf(api)
  return (path) => {
    if (pages.includes(path)) return ["GET", "HEAD"]
    const found = routes.filter(({ pattern }) => pattern.test(path)).map(({ endpoint }) => endpoint)
    const spelled = found.filter((endpoint) => endpoint.path === path)
    const methods = (spelled.length > 0 ? spelled : found).map(({ method }) => method)
    return methods.includes("GET") ? [...methods, "HEAD"] : methods
  }
}

/** True for a route that refuses all parameters. Health checks come with those of their load balancer. */
type TakesNone = (method: string, path: string) => boolean

export const takesNoneOf = (api: Routes): TakesNone => {
  const routes = patternsOf(api).filter(({ endpoint }) => {
    const parsing = Context.getOrUndefined(endpoint.annotations, HttpApi.QueryParseOptions)
    return endpoint.path.startsWith("/api/") && endpoint.query === undefined && parsing?.onExcessProperty !== "ignore"
  })
  return (method, path) => routes.some(({ endpoint, pattern }) => endpoint.method === method && pattern.test(path))
}

/** A misspelt or misplaced parameter would otherwise change nothing and say nothing. */
export const refuseParameters =
  (takesNone: TakesNone) =>
  <E, R>(routes: Served<E, R>): Served<E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
      const mark = url.indexOf("?")
      if (mark === -1 || !takesNone(method, url.slice(0, mark))) return routes
      const names = new Set(new URLSearchParams(url.slice(mark)).keys())
      if (names.size === 0) return routes
      return Effect.succeed(
        toResponse(invalidFields([...names].map((field) => ({ field, reason: "is not a parameter of this request" }))))
      )
    })

export const refuseAddresses =
  (allowedMethods: AllowedMethods) =>
  <E, R>(routes: Served<E, R>): Served<E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
      const problem = addressProblem(url, allowedMethods)
      return problem === null ? routes : Effect.succeed(toResponse(problem))
    })

const BROKEN = "must be UTF-8 without NUL, percent-encoded"

const addressProblem = (url: string, allowedMethods: AllowedMethods): Problem | null => {
  const mark = url.indexOf("?")
  const path = mark === -1 ? url : url.slice(0, mark)
  if (path.includes("//") || path.includes(";") || path.split("/").some(isDots)) return notFound()
  // The router would read both as the path without them.
  if (path.length > 1 && path.endsWith("/")) return notFound()
  if (path.includes("%")) {
    // The router would read an escaped fixed part as the path it stands for.
    if (allowedMethods(path).length === 0) return notFound()
    if (path.split("/").some(isBroken)) return invalidFields([{ field: "path", reason: BROKEN }])
  }
  if (mark === -1 || !url.includes("%", mark)) return null
  const broken = url
    .slice(mark + 1)
    .split("&")
    .filter(isBroken)
    .map((pair) => ({ field: nameOf(pair.split("=", 1)[0]!), reason: BROKEN }))
  return broken.length === 0 ? null : invalidFields(broken.slice(0, FAULTS_MAX))
}

const isDots = (segment: string) => /^(\.|%2e){1,2}$/i.test(segment)

const decoded = (text: string) => Result.try(() => decodeURIComponent(text))

const isBroken = (text: string): boolean =>
  text.includes("%") &&
  Result.match(decoded(text), { onFailure: () => true, onSuccess: (plain) => plain.includes("\0") })

const nameOf = (text: string): string => Result.getOrElse(decoded(text), () => "query").replaceAll("\0", "")

/** For a bug the caller gets only the number under which it was logged. */
export const lastResort =
  (allowedMethods: AllowedMethods) =>
  <E, R>(routes: Served<E, R>): Served<E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.catchCause(routes, (cause) =>
      // The caller is gone or the server stops.
      Cause.hasInterruptsOnly(cause)
        ? Effect.failCause(cause)
        : Effect.map(unansweredProblem(cause, allowedMethods), toResponse)
    )

const unansweredProblem = (
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
      // An allowed method without a handler: an id too long for the router.
      return methods.includes(method) ? notFound() : methodNotAllowed(methods)
    })
  }
  if (HttpApiError.HttpApiSchemaError.is(error) && error.kind !== "Body" && error.kind !== "ResponseHeaders") {
    return Effect.succeed(invalidFields(faultsOf(error.cause.issue, "")))
  }
  const requestId = randomUUID()
  return Effect.as(Effect.logError(`request ${requestId} met a bug`, cause), internal(requestId))
}
