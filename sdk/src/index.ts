/**
 * The client of Posthaste: `new Posthaste({url, apiKey})` has a typed method for every route of the API, in the groups of the
 * API's own reference (`/docs` of a running service), and `feed()`.
 */
import { type Api, routes } from "./api.ts"
import { type Connection, connect, type PosthasteOptions } from "./client.ts"
import { type FeedCallOptions, type FeedFact, type FeedOptions, follow } from "./feed.ts"

export type * from "./api.ts"
export type { CallOptions, KeyedCallOptions, Page, Pages, PosthasteOptions } from "./client.ts"
export * from "./errors.ts"
export type { FeedCallOptions, FeedFact, FeedOptions } from "./feed.ts"

/** The groups of routes as members, as the table says. */
const Routes = class {
  constructor({ call }: Connection) {
    for (const [group, table] of Object.entries(routes)) {
      const methods = Object.entries(table).map(([name, route]) => [
        name,
        (...given: ReadonlyArray<unknown>) => call(route, given)
      ])
      Object.assign(this, { [group]: Object.fromEntries(methods) })
    }
  }
} as new (
  connection: Connection
) => Api

export class Posthaste extends Routes {
  readonly #connection: Connection

  constructor(options: PosthasteOptions) {
    const connection = connect(options)
    super(connection)
    this.#connection = connection
  }

  /** Every fact of the org as it is stored, until the loop or the signal ends it. It reconnects by itself. */
  feed(options?: FeedOptions, call?: FeedCallOptions): AsyncGenerator<FeedFact, void, undefined> {
    return follow(this.#connection, options, call)
  }
}
