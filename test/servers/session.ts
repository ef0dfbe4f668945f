import { Effect, Redacted } from "effect"
import pg from "pg"

/** A session of the test's own beside the product's, for as long as the scope. */
export const session = (url: Redacted.Redacted, application?: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({
        connectionString: Redacted.value(url),
        options: "-c search_path=posthaste",
        ...(application !== undefined && { application_name: application })
      })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )
