/**
 * Serves the routes that accept messages and events without HttpApiBuilder's merge of services, which copies a map of
 * seventy twice a request: 13 of 150 µs and a fifth of all garbage. Access and decoding of headers are the same.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { HttpRouter, type HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder, type HttpApiEndpoint, HttpApiError, type HttpApiGroup } from "effect/http-api"
import { type ActingOrg, type Caller, OrgAccess } from "./auth.ts"

/** The result of `HttpApiBuilder.group`. */
interface Built {
  readonly routes: ReadonlyArray<HttpRouter.Route<unknown, unknown>>
  readonly handlers: ReadonlyMap<string, Handled>
}

type Request = HttpServerRequest.HttpServerRequest

interface Handled {
  readonly endpoint: HttpApiEndpoint.Top
  readonly handler: (request: object) => Effect.Effect<HttpServerResponse.HttpServerResponse, never, ActingOrg | Caller>
}

/** The group with these endpoints served so. Their handlers answer by themselves (`handleRaw`). */
export const oftenAsked = <Group extends HttpApiGroup.Constraint, A, E, R>(
  group: Group,
  names: ReadonlyArray<keyof Group["endpoints"]>,
  handlers: Layer.Layer<A, E, R>
): Layer.Layer<A, E, R | OrgAccess> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { apiKey } = yield* OrgAccess
      const built = (yield* Layer.build(handlers)).mapUnsafe.get(group.key) as Built
      const handled = [...built.handlers]
      const routes = built.routes.map((route, i) => {
        const [name, { endpoint, handler }] = handled[i]!
        if (!names.includes(name)) return route
        const asked = { endpoint, group: group as unknown as HttpApiGroup.Top }
        const handling = handlingOf(asked, handler)
        return HttpRouter.route(route.method, route.path, (request) =>
          Effect.flatMap(credentialOf, (credential) => apiKey(handling(request), { credential, ...asked }))
        )
      })
      return Context.makeUnsafe<A>(new Map([[group.key, { ...built, routes }]]))
    })
  )

const credentialOf = HttpApiBuilder.securityDecode(OrgAccess.security.apiKey)

const handlingOf = (asked: Pick<Handled, "endpoint">, handler: Handled["handler"]) => {
  const { headers: schema } = asked.endpoint
  if (schema === undefined) return (request: Request) => handler({ request, ...asked })
  const decode = Schema.decodeUnknownEffect(schema as Schema.Codec<unknown>, { errors: "all" })
  return (request: Request) =>
    Effect.matchEffect(decode(request.headers), {
      onFailure: (cause) => Effect.die(new HttpApiError.HttpApiSchemaError({ kind: "Headers", cause })),
      onSuccess: (headers) => handler({ request, headers, ...asked })
    })
}
