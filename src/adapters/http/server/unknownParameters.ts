/**
 * Refuses the parameters of a request to a route that has none, by name: a misspelt or misplaced one would otherwise change
 * nothing and say nothing.
 */
import { Effect } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { TakesNone } from "./allowedMethods.ts"
import { invalidFields, toResponse } from "./problem.ts"

export const refuseParameters =
  (takesNone: TakesNone) =>
  <E, R>(
    routes: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
      const mark = url.indexOf("?")
      if (mark === -1 || !takesNone(method, url.slice(0, mark))) return routes
      const names = new Set(new URLSearchParams(url.slice(mark)).keys())
      if (names.size === 0) return routes
      return Effect.succeed(
        toResponse(invalidFields([...names].map((field) => ({ field, reason: "is not a parameter of this request" }))))
      )
    })
