/** The methods that a path answers, so that a wrong method (405) is told apart from an unknown path (404). */

interface Routes {
  readonly groups: Readonly<
    Record<string, { readonly endpoints: Readonly<Record<string, { readonly method: string; readonly path: string }>> }>
  >
}

const pages = ["/openapi.json", "/docs"]

/** Empty for an unknown path. */
export type AllowedMethods = (path: string) => ReadonlyArray<string>

export const allowedMethodsOf = ({ groups }: Routes): AllowedMethods => {
  const routes = Object.values(groups).flatMap(({ endpoints }) =>
    Object.values(endpoints).map(({ method, path }) => ({
      method,
      pattern: new RegExp(`^${path.replace(/:[a-z]+/gi, "[^/]+")}/?$`)
    }))
  )
  return (path) =>
    pages.includes(path) ? ["GET"] : routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
}
