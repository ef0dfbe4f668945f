import { DateTime, Effect } from "effect"
import { type AccessFact, toRecorded } from "../../domain/access/facts.ts"
import { CommandedBy } from "../commandedBy.ts"
import { Journals } from "../ports/Journals.ts"

/** Stored before the body is shown. `id` is a new one. */
export const noteAccess = Effect.fnUntraced(function* (id: string, fact: AccessFact) {
  const { append } = yield* Journals
  yield* append(`access-${id}`, 0, [toRecorded(fact)], yield* DateTime.now, yield* CommandedBy)
})
