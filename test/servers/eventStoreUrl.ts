/** Where tests find an EventStoreDB: the server that `EVENTSTORE_URL` names, or a stand-in. A real one may hold anything. */
import { Effect } from "effect"
import { eventStore } from "./eventStore.ts"

export const eventStoreUrl = Effect.suspend(() => {
  const given = process.env["EVENTSTORE_URL"]
  return given ? Effect.succeed(given) : Effect.map(eventStore(), ({ url }) => url)
})
