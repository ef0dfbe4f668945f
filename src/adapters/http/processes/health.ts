/** Ready: the store answers within two seconds, with troubles told beside. Alive: this process answers. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { EventStore } from "../../../application/ports/EventStore.ts"
import { StoreUnavailable } from "../../../application/ports/errors.ts"
import { Processes } from "../../../application/ports/Processes.ts"
import { Troubles } from "../../../application/processes/Troubles.ts"
import { MessageId } from "../../../domain/ids.ts"
import { base, titled, words } from "../server/endpoints.ts"
import { Moment } from "../server/fields.ts"
import { answer, problemOf } from "../server/problem.ts"
import { troubleJson, troubles } from "./troublesApi.ts"

const Health = Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Health" })

const Readiness = Schema.Struct({
  status: Schema.Literal("ok"),
  rabbitmq: Schema.optionalKey(
    Schema.Struct({ status: Schema.Literals(["ok", "away"]), since: Moment }).annotate({
      description: "Where Posthaste has one. While it is away facts wait, and commands wait there; all else goes on."
    })
  ),
  troubles: Schema.optionalKey(troubles)
}).annotate({ identifier: "Readiness" })

export const healthApi = HttpApiGroup.make("health")
  .add(
    HttpApiEndpoint.get("live", "/healthz", { success: Health }).annotateMerge(words("The process runs.")),
    HttpApiEndpoint.get("ready", "/readyz", { success: Readiness, error: problemOf(503) }).annotateMerge(
      words("The store answers.")
    )
  )
  .annotateMerge(titled("Health", "For load balancers. No API key."))

const ok = { status: "ok" } as const

/** The cheapest question: no message has this id. */
const noMessage = MessageId.make("00000000-0000-0000-0000-000000000000")

/** A process without the broker tells what those with it have written down. */
const broker = Effect.flatMap(Processes, ({ brokerReach }) =>
  Effect.map(brokerReach, (found) =>
    found === null ? null : { status: found.away ? ("away" as const) : ("ok" as const), since: found.since }
  )
)

export const ready = Effect.flatMap(EventStore, (store) =>
  store.load(noMessage).pipe(
    Effect.timeoutOrElse({
      duration: "2 seconds",
      orElse: () => Effect.fail(new StoreUnavailable({ cause: new Error("no answer within 2 seconds") }))
    }),
    Effect.as(ok)
  )
)

const readiness = Effect.gen(function* () {
  yield* ready
  const rabbitmq = yield* broker
  const all = yield* (yield* Troubles).now
  return { ...ok, ...(rabbitmq !== null && { rabbitmq }), ...(all.length > 0 && { troubles: all.map(troubleJson) }) }
})

export const layer = HttpApiBuilder.group(base.add(healthApi), "health", (handlers) =>
  handlers.handle("live", () => Effect.succeed(ok)).handle("ready", () => answer(readiness))
)
