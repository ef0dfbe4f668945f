/** Facts written in the same step as the change they tell of, with whoever is behind it. */
import { Effect } from "effect"
import { Actor } from "../../../src/application/actor.ts"
import { journalOf } from "../../../src/domain/destination/changes.ts"
import type { ConfigurationFact } from "../../../src/domain/destination/facts.ts"
import { toRecorded } from "../../../src/domain/destination/recorded.ts"
import type { ChannelName, DestinationId } from "../../../src/domain/ids.ts"
import { addToJournal, type Memory } from "../Memory.ts"

type Note = (id: DestinationId, facts: ReadonlyArray<ConfigurationFact>) => void

/** Runs a change of one kind of destination in one step. */
export const noterOf =
  ({ tables, now }: Memory["Service"], channel: ChannelName) =>
  <A>(change: (note: Note) => A): Effect.Effect<A> =>
    Effect.gen(function* () {
      const actor = yield* Actor
      return change((id, facts) => addToJournal(tables, journalOf(channel, id), facts.map(toRecorded), now(), actor))
    })
