/** Which methods a path answers, so that a wrong method is told apart from a path that leads nowhere. */
import { Api } from "./Api.ts"

const routes = Object.values(Api.groups).flatMap((group) =>
  Object.values(group.endpoints).map(({ method, path }) => ({
    method: method as string,
    pattern: new RegExp(`^${path.replace(/:[a-z]+/gi, "[^/]+")}/?$`)
  }))
)

const pages = ["/openapi.json", "/docs"]

/** Empty for a path that leads nowhere. */
export const allowedMethods = (path: string): ReadonlyArray<string> =>
  pages.includes(path) ? ["GET"] : routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
