/** Ready: the store answers within two seconds; what is wrong elsewhere is told beside. Alive: this process answers. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { StoreUnavailable } from "../../../application/errors.ts"
import { EventStore } from "../../../application/ports/EventStore.ts"
import { Processes } from "../../../application/ports/Processes.ts"
import { Troubles } from "../../../application/processes/Troubles.ts"
import { MessageId } from "../../../domain/ids.ts"
import { troubleJson } from "../processes/troublesApi.ts"
import { Api } from "./Api.ts"
import { answer } from "./problem.ts"

const ok = { status: "ok" } as const

/** No message has this id, so the question costs the store the least. */
const noMessage = MessageId.make("00000000-0000-0000-0000-000000000000")

/** A process that has the API and not the broker tells what those with the broker have written down. */
const broker = Effect.flatMap(Processes, ({ brokerReach }) =>
  Effect.map(brokerReach, (found) =>
    found === null ? null : { status: found.away ? ("away" as const) : ("ok" as const), since: found.since }
  )
)

/** Fails with `StoreUnavailable` when the store does not answer in time. */
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
  const troubles = yield* (yield* Troubles).now
  return {
    ...ok,
    ...(rabbitmq !== null && { rabbitmq }),
    ...(troubles.length > 0 && { troubles: troubles.map(troubleJson) })
  }
})

export const layer = HttpApiBuilder.group(Api, "health", (handlers) =>
  handlers.handle("live", () => Effect.succeed(ok)).handle("ready", () => answer(readiness))
)
