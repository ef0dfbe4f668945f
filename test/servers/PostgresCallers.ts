/** Callers with a connection each to the database of Posthaste, as users' services have them. */
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { Callers } from "../contracts/requests/Callers.ts"

export const layer = (url: Redacted.Redacted) =>
  Layer.effect(
    Callers,
    Effect.gen(function* () {
      const clients: Array<pg.Client> = []
      yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all(clients.map((client) => client.end()))))
      return {
        begin: Effect.promise(async () => {
          const client = new pg.Client({ connectionString: Redacted.value(url) })
          clients.push(client)
          await client.connect()
          await client.query("begin")
          const run = (text: string, values: Array<unknown> = []) => Effect.promise(() => client.query(text, values))
          return {
            send: (request: string, { org = "acme", key = null as string | null } = {}) =>
              Effect.map(run("select posthaste.send($1, $2, $3) as id", [org, request, key]), ({ rows }) => rows[0].id),
            commit: Effect.asVoid(run("commit")),
            rollback: Effect.asVoid(run("rollback"))
          }
        })
      }
    })
  )
