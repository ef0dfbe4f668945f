/**
 * Judges the address of a request before it is routed. A path has one spelling: a proxy in front that allows some paths
 * and Posthaste must never disagree about which path it is. What no database can hold (NUL, text that is not UTF-8) is
 * refused by the name of its parameter.
 */
import { Effect, Result } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { AllowedMethods } from "./allowedMethods.ts"
import { invalidFields, notFound, type Problem, toResponse } from "./problem.ts"

export const refuseAddresses =
  (allowedMethods: AllowedMethods) =>
  <E, R>(
    routes: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
      const problem = problemOf(url, allowedMethods)
      return problem === null ? routes : Effect.succeed(toResponse(problem))
    })

const BROKEN = "must be UTF-8 without NUL, percent-encoded"

const problemOf = (url: string, allowedMethods: AllowedMethods): Problem | null => {
  const mark = url.indexOf("?")
  const path = mark === -1 ? url : url.slice(0, mark)
  if (path.includes("//") || path.includes(";") || path.split("/").some(isDots)) return notFound()
  // The router would read both as the path without them.
  if (path.length > 1 && path.endsWith("/")) return notFound()
  if (path.includes("%")) {
    // A fixed part that is spelled with escapes: the router would read it as the path it stands for.
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

const FAULTS_MAX = 20

const isDots = (segment: string) => /^(\.|%2e){1,2}$/i.test(segment)

const decoded = (text: string) => Result.try(() => decodeURIComponent(text))

const isBroken = (text: string): boolean =>
  text.includes("%") &&
  Result.match(decoded(text), { onFailure: () => true, onSuccess: (plain) => plain.includes("\0") })

const nameOf = (text: string): string => Result.getOrElse(decoded(text), () => "query").replaceAll("\0", "")
