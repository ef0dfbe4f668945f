/** Refuses a filter by a channel that does not exist, which would find nothing and say nothing. */
import { Effect } from "effect"
import { noSuchChannel } from "../../../application/accept/addressing.ts"
import { Channels } from "../../../application/ports/Channels.ts"
import { invalidFields } from "./problem.ts"

export const knownChannel = Effect.fnUntraced(function* (name: string | undefined) {
  const channels = yield* Channels
  if (name !== undefined && !channels.has(name)) return yield* invalidFields([noSuchChannel(channels)])
})
