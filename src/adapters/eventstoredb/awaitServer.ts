/** A start waits for a server that is away, and ends where no waiting helps. */
import { ErrorType } from "@eventstore/db-client"
import { Effect } from "effect"
import type { StoreUnavailable } from "../../application/ports/errors.ts"
import { saysOf, typeOf } from "./clientErrors.ts"
import { EventStoreDbFailed, find, type Where } from "./findServer.ts"

export type Patience = "wait" | "fail"

const LOOKS_EVERY = "1 second"

export const untilThere = (where: Where, patience: Patience) =>
  waiting(
    patience,
    Effect.flatMap(
      Effect.promise(() => find(where)),
      (found) =>
        found.type === "Wrong"
          ? Effect.fail(new EventStoreDbFailed({ message: found.says }))
          : Effect.succeed(found.type === "There" ? null : found.says)
    )
  )

/** The first question shows whether user and password are right. */
export const untilLetIn = (where: Where, question: Effect.Effect<unknown, StoreUnavailable>, patience: Patience) =>
  waiting(
    patience,
    question.pipe(
      Effect.as(null),
      Effect.catch(({ cause }) =>
        typeOf(cause) === ErrorType.ACCESS_DENIED
          ? Effect.fail(
              new EventStoreDbFailed({
                message:
                  where.user === null
                    ? "EventStoreDB wants a user and a password: name them in EVENTSTORE_URL, as esdb://user:password@host:2113"
                    : `EventStoreDB does not accept the user ${where.user} with the password in EVENTSTORE_URL`
              })
            )
          : Effect.succeed(saysOf(cause))
      )
    )
  )

/** `look` answers null, or the reason to wait, which is said at the begin and at the end. */
const waiting = Effect.fnUntraced(function* (
  patience: Patience,
  look: Effect.Effect<string | null, EventStoreDbFailed>
) {
  let said: string | null = null
  for (;;) {
    const why = yield* look
    if (why === null)
      return said === null ? undefined : yield* Effect.logInfo("EventStoreDB is there: the start goes on")
    if (patience === "fail") return yield* new EventStoreDbFailed({ message: why })
    if (why !== said) yield* Effect.logWarning(`${why}: the start waits for it`)
    said = why
    yield* Effect.sleep(LOOKS_EVERY)
  }
})
