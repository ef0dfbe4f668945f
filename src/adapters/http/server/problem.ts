/** Problems (adapters/api/problem.ts) as HTTP answers. */
import { Effect, type Result } from "effect"
import { HttpServerResponse, ProblemDetails } from "effect/http"
import { HttpApiSchema } from "effect/http-api"
import type { Fault } from "../../../application/ports/errors.ts"
import { StoreHealth } from "../../../application/storeHealth.ts"
import { isUuid } from "../../../domain/ids.ts"
import { type Failure, invalidFields, notFound, type Problem, ProblemBody, problemFor } from "../../api/problem.ts"

export * from "../../api/problem.ts"

/** Promises in the OpenAPI document that an endpoint can answer with this status. */
export const problemOf = (status: number) =>
  ProblemBody.pipe(HttpApiSchema.status(status), HttpApiSchema.asJson({ contentType: ProblemDetails.contentType }))

export const toResponse = ({ body, headers }: Problem): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setHeaders(ProblemDetails.toResponse({ ...body }), headers)

const unanswered = (cause: unknown) =>
  Effect.flatMap(StoreHealth, (store) => store.failed("answering requests", cause)).pipe(
    Effect.flatMap((isLogged) => (isLogged ? Effect.void : Effect.logWarning("the store did not answer", cause)))
  )

/** The cause of an outage goes to the log only: it can name hosts, tables and users. */
export const refuse = (failure: Failure): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const problem = problemFor(failure)
  const response = Effect.sync(() => toResponse(problem))
  return failure._tag === "StoreUnavailable" ? Effect.andThen(unanswered(failure.cause), response) : response
}

/** Answers with a new resource and its path. */
export const created = (path: string, value: object, status = 201): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(value, { status, headers: { location: `/api/v1${path}` } })

/** Answers a text that is no id like an absent id. */
export const idOf =
  <Id>(kind: { readonly make: (text: string) => Id }) =>
  (text: string): Effect.Effect<Id, Problem> =>
    isUuid(text) ? Effect.succeed(kind.make(text)) : Effect.fail(notFound())

export const orNotFound = <A>(found: A | null): Effect.Effect<A, Problem> =>
  found === null ? Effect.fail(notFound()) : Effect.succeed(found)

export const judged = <A>(result: Result.Result<A, ReadonlyArray<Fault>>): Effect.Effect<A, Problem> =>
  Effect.mapError(Effect.fromResult(result), invalidFields)

/** The handler's answer, or its failure as a problem. */
export const answer = <A, R>(
  effect: Effect.Effect<A, Failure, R>
): Effect.Effect<A | HttpServerResponse.HttpServerResponse, never, R> => Effect.catch(effect, refuse)
