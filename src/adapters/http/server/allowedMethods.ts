/**
 * The routes as data: which methods a path answers, so that a wrong method (405) is told apart from an unknown path (404),
 * and which routes take parameters at all.
 */
import { Context } from "effect"
import { HttpApi } from "effect/http-api"

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

/** Empty for an unknown path. */
export type AllowedMethods = (path: string) => ReadonlyArray<string>

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
    // A path that is spelled out is no id.
    const spelled = found.filter((endpoint) => endpoint.path === path)
    const methods = (spelled.length > 0 ? spelled : found).map(({ method }) => method)
    return methods.includes("GET") ? [...methods, "HEAD"] : methods
  }
}

/**
 * Whether a route has no parameters and cares that nobody gives it any. A route with parameters refuses others itself; health
 * checks come with what their load balancer adds.
 */
export type TakesNone = (method: string, path: string) => boolean

export const takesNoneOf = (api: Routes): TakesNone => {
  const routes = patternsOf(api).filter(({ endpoint }) => {
    const parsing = Context.getOrUndefined(endpoint.annotations, HttpApi.QueryParseOptions)
    return endpoint.path.startsWith("/api/") && endpoint.query === undefined && parsing?.onExcessProperty !== "ignore"
  })
  return (method, path) => routes.some(({ endpoint, pattern }) => endpoint.method === method && pattern.test(path))
}
