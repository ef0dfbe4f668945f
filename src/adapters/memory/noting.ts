/** Facts written in the same step as the change they tell of, with whoever is behind it. */
import { Effect } from "effect"
import { Actor } from "../../application/actor.ts"
import { journalOf } from "../../domain/configuration/changes.ts"
import type { ConfigurationFact } from "../../domain/configuration/facts.ts"
import { toRecorded } from "../../domain/configuration/recorded.ts"
import type { ChannelName, DestinationId } from "../../domain/ids.ts"
import { addToJournal, type Memory } from "./Memory.ts"

type Note = (id: DestinationId, facts: ReadonlyArray<ConfigurationFact>) => void

/** Runs a change of one kind of destination in one step. */
export const noterOf =
  ({ tables, now }: Memory["Service"], channel: ChannelName) =>
  <A>(change: (note: Note) => A): Effect.Effect<A> =>
    Effect.gen(function* () {
      const actor = yield* Actor
      return change((id, facts) => addToJournal(tables, journalOf(channel, id), facts.map(toRecorded), now(), actor))
    })
