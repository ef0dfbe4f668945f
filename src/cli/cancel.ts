/** `posthaste cancel`. */
import { Effect, Record } from "effect"
import { Command, Flag } from "effect/cli"
import type { Replay } from "../../sdk/src/api.ts"
import { confirmed, confirmFlags, countOf } from "./confirm.ts"
import { detach, finish } from "./replays.ts"
import { optionalText, orgService, serviceFlags, switchFlag } from "./service.ts"
import { failed, print } from "./terminal.ts"

export const cancel = Command.make(
  "cancel",
  {
    id: Flag.String("id").pipe(Flag.withDescription("This message; may be given again"), Flag.atLeast(0)),
    to: optionalText("to", "All that wait for this destination or recipient"),
    channel: optionalText("channel", "Only those of this channel"),
    eventType: optionalText("event-type", "Only those of this type"),
    correlationId: optionalText("correlation-id", "Only those with this correlation id"),
    all: switchFlag("all", "Every message of the org that waits"),
    reason: optionalText("reason", "The reason to store"),
    detach,
    ...confirmFlags,
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, all, reason, detach, yes, preview, json, url, org, ...given }) {
    const filter = Record.getSomes(given)
    const isFiltered = Object.keys(filter).length > 0
    if ([all, isFiltered, id.length > 0].filter(Boolean).length !== 1) {
      return yield* failed("choose the messages: --id, or filters such as --to and --event-type, or --all")
    }
    const service = yield* orgService({ url, org })
    const why = Record.getSomes({ reason })
    const waiting = id.length > 0 ? String(id.length) : yield* countOf(service, { ...filter, status: "QUEUED" })
    if (!(yield* confirmed(`${waiting} waiting, to be cancelled for good`, { yes, preview }))) return
    if (id.length > 0) {
      for (const each of id) {
        const path = `/outbound/messages/${encodeURIComponent(each)}/cancel`
        const { text } = yield* service.call("POST", path, JSON.stringify(why))
        yield* print(json ? text : `${each} cancelled`)
      }
      return
    }
    const begun = yield* service.post<Replay>("/outbound/messages/cancel", { filter, ...why })
    return yield* finish(service, begun, { detach, json, left: "did not wait any more", done: "cancelled" })
  })
).pipe(
  Command.withDescription(
    "Cancel messages that wait: these, or all that match. The latter is a job in the service that goes on when this command is stopped."
  ),
  Command.withShortDescription("Cancel messages that wait"),
  Command.withExamples([
    {
      command: 'posthaste cancel --to 66f69029-… --reason "the customer is gone" --yes',
      description: "A whole backlog"
    }
  ])
)
