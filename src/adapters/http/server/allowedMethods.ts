/** Which methods a path answers, so that a wrong method is told apart from a path that leads nowhere. */

interface Routes {
  readonly groups: Readonly<
    Record<string, { readonly endpoints: Readonly<Record<string, { readonly method: string; readonly path: string }>> }>
  >
}

const pages = ["/openapi.json", "/docs"]

/** Empty for a path that leads nowhere. */
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
