/** `/metrics` for the operator's key, and the counts of answers by route pattern. */
import { Clock, Context, Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { hashOf } from "./apiKey.ts"
import { isOperator, type OperatorKeys } from "./auth.ts"
import { forbidden, toResponse, unauthorized } from "./problem.ts"

/** `route` is the pattern, `GET /api/v1/…/:id`; null where none matched. */
export type Answered = (route: string | null, status: number, seconds: number) => void

/** The text in the form that the caller's `accept` prefers. */
export type MetricsText = (accept: string | undefined) => { readonly text: string; readonly contentType: string }

export const metricsRoute = (operatorKeys: OperatorKeys, metrics: MetricsText) => {
  const handler = Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const key = /^Bearer (.+)$/i.exec(headers["authorization"] ?? "")?.[1]
    if (key === undefined) return toResponse(unauthorized("Send the header authorization: Bearer <operator key>."))
    if (!isOperator(operatorKeys, hashOf(key))) return toResponse(forbidden("Only the operator's key may do this."))
    const { text, contentType } = metrics(headers["accept"])
    return HttpServerResponse.text(text, { contentType })
  })
  return HttpRouter.add("GET", "/metrics", handler)
}

export const counted =
  (answered: Answered) =>
  <E, R>(
    routes: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
    Effect.withFiber((fiber) => {
      const clock = Context.get(fiber.context, Clock.Clock)
      const since = clock.monotonicTimeNanosUnsafe()
      return Effect.map(routes, (response) => {
        const matched = Context.getOrUndefined(fiber.context as Context.Context<never>, HttpRouter.RouteContext)
        const route = matched === undefined ? null : `${matched.route.method} ${matched.route.path}`
        answered(route, response.status, Number(clock.monotonicTimeNanosUnsafe() - since) / 1e9)
        return response
      })
    })
