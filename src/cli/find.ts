/** `posthaste find`. */
import { Effect, Record, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { optionalText, orgService, serviceFlags, timeFlag } from "./service.ts"
import { colourOf, note, paints, print, printJsonLine, table } from "./terminal.ts"

interface Found {
  readonly id: string
  readonly status: string
  readonly channel: string
  readonly to: string
  readonly eventType: string | null
  readonly createdAt: string
  readonly lastError: { readonly code: string } | null
}

const filterFlags = {
  idempotencyKey: optionalText("key", "The one with this idempotency key"),
  metadata: optionalText("metadata", "Those with this entry of metadata, such as order=4711"),
  correlationId: optionalText("correlation-id", "Those with this correlation id"),
  dossierId: optionalText("dossier-id", "Those of this dossier"),
  to: optionalText("to", "Those to this destination or recipient"),
  eventType: optionalText("event-type", "Those of this type of event"),
  status: optionalText("status", "Those in this status, such as DEAD_LETTER"),
  errorCode: optionalText("error-code", "Dead letters whose last error had this code, such as http_410"),
  createdAfter: timeFlag("after", "Those that were accepted after this time"),
  createdBefore: timeFlag("before", "Those that were accepted before this time"),
  updatedAfter: timeFlag("updated-after", "Those to which something happened after this time"),
  attempts: optionalText("attempts", "Those with at least so many attempts")
}

export const find = Command.make(
  "find",
  {
    ...filterFlags,
    limit: Flag.Int("limit").pipe(Flag.withDescription("The largest number to list"), Flag.withDefault(50)),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ limit, json, url, org, ...filter }) {
    const service = yield* orgService({ url, org })
    const query = { ...Record.getSomes(filter), limit: String(Math.min(limit, 200)) }
    const found = service.items<Found>("/outbound/messages", query).pipe(Stream.take(limit))
    if (json) return yield* Stream.runForEach(found, printJsonLine)
    const paint = yield* paints
    const rows = yield* Stream.runCollect(
      Stream.map(found, ({ id, status, channel, to, eventType, createdAt, lastError }) => [
        colourOf(paint, status)(status.padEnd(11)),
        id,
        createdAt,
        channel,
        to,
        eventType ?? "",
        lastError?.code ?? ""
      ])
    )
    yield* rows.length === 0 ? note("there are no messages that match") : print(table(rows))
  })
).pipe(
  Command.withDescription("Messages by what their sender knows of them, the newest first. With --json one a line."),
  Command.withShortDescription("Find messages by key, metadata, destination, error, …"),
  Command.withExamples([
    { command: "posthaste find --metadata order=4711", description: "By metadata" },
    { command: "posthaste find --key order-4711", description: "By idempotency key" }
  ])
)
