/** `posthaste endpoints`: health, test, recovery and secret of a webhook endpoint. */
import { Effect, Option, Record } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { DestinationHealth, HealthSummary, Replay } from "../../sdk/src/api.ts"
import { detach, finish } from "./replays.ts"
import { readText } from "./requestText.ts"
import { plainVerbs } from "./resources.ts"
import { noteLateness, optionalText, orgService, serviceFlags, switchFlag, timeFlag } from "./service.ts"
import { colourOf, fromNow, grouped, note, paints, print, printJson } from "./terminal.ts"
import { timeOf } from "./times.ts"
import { waitFor } from "./wait.ts"

const id = Argument.String("id").pipe(Argument.withDescription("The endpoint's id"))
const pathOf = (id: string) => `/webhook-endpoints/${encodeURIComponent(id)}`

const summaryOf = (when: string, { attempts, succeeded, successRate, latencyMs }: HealthSummary): string =>
  successRate === null
    ? `${when}: no attempts`
    : `${when}: ${grouped(succeeded)} of ${grouped(attempts)} attempts succeeded (${(successRate * 100).toFixed(1)} %)` +
      (latencyMs === null ? "" : `, p50 ${latencyMs.p50} ms, p95 ${latencyMs.p95} ms, p99 ${latencyMs.p99} ms`)

const health = Command.make(
  "health",
  { id, ...serviceFlags },
  Effect.fnUntraced(function* ({ id, json, ...flags }) {
    const found = yield* (yield* orgService(flags)).get<DestinationHealth>(`${pathOf(id)}/health`)
    yield* noteLateness(found)
    if (json) return yield* printJson(found)
    const paint = yield* paints
    const now = Date.now()
    const { state, circuit, disabledReason, failingSince, waiting, oldestDueAt } = found
    const said = state === "ACTIVE" ? circuit : state
    yield* print(
      [
        `${colourOf(paint, said)(paint.bold(said))}  ${id}`,
        ...(disabledReason === null ? [] : [`why: ${disabledReason}`]),
        ...(failingSince === null
          ? []
          : [`every attempt has failed since ${failingSince} (${fromNow(failingSince, now)})`]),
        `${grouped(waiting)} waiting${oldestDueAt === null ? "" : `, the first due ${fromNow(oldestDueAt, now)}`}`,
        summaryOf("last hour", found.lastHour),
        summaryOf("last day", found.lastDay)
      ].join("\n")
    )
  })
).pipe(Command.withDescription("How an endpoint did in the last hour and day, and what waits for it."))

const test = Command.make(
  "test",
  {
    id,
    eventType: optionalText("event-type", "Send the example of this type of the catalogue"),
    wait: switchFlag("wait", "Follow the message until it has ended; ends with 1 if it was not delivered"),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, eventType, wait, json, ...flags }) {
    const service = yield* orgService(flags)
    const message = yield* service.post<{ readonly id: string }>(`${pathOf(id)}/test`, Record.getSomes({ eventType }))
    if (wait) return yield* waitFor(service, message.id, json)
    yield* json ? printJson(message) : print(message.id)
  })
).pipe(
  Command.withDescription("Send an endpoint a real, signed message that says that it is a test. Prints its id."),
  Command.withShortDescription("Send a test message")
)

const again = {
  id,
  since: Flag.String("since").pipe(
    Flag.withDescription("From this time on, such as 15:02, yesterday 15:02, 2h or 2026-11-18T12:00:00Z"),
    Flag.map((text) => timeOf(text, new Date()))
  ),
  reason: optionalText("reason", "The reason to store with the replay"),
  key: optionalText("key", "Idempotency key: every call with the same key means the same replay"),
  detach,
  ...serviceFlags
}

const recover = Command.make(
  "recover",
  {
    ...again,
    until: timeFlag("until", "Up to this time; until now when left out"),
    status: Flag.Literals("status", ["FAILED", "DEAD_LETTER"]).pipe(
      Flag.withDescription("Only those that ended so; may be given again"),
      Flag.atLeast(0)
    )
  },
  Effect.fnUntraced(function* ({ id, since, until, status, reason, key, detach, json, ...flags }) {
    const service = yield* orgService(flags)
    const said = Record.getSomes({ until, reason, idempotencyKey: key })
    const body = { since, ...said, ...(status.length > 0 && { statuses: status }) }
    const begun = yield* service.post<Replay>(`${pathOf(id)}/recover`, body)
    const left = "were no dead letters any more or had no body to send"
    yield* finish(service, begun, { detach, json, left })
  })
).pipe(
  Command.withDescription(
    "Send an endpoint everything again that ended badly there since a time, and follow it to its end. The replay runs in the service and goes on when this command is stopped."
  ),
  Command.withShortDescription("Send again what ended badly at an endpoint"),
  Command.withExamples([
    { command: "posthaste endpoints recover 66f69029-… --since 2026-11-18T12:00:00Z", description: "After an outage" }
  ])
)

const replayMissing = Command.make(
  "replay-missing",
  again,
  Effect.fnUntraced(function* ({ id, since, reason, key, detach, json, ...flags }) {
    const service = yield* orgService(flags)
    const body = { since, ...Record.getSomes({ reason, idempotencyKey: key }) }
    const begun = yield* service.post<Replay>(`${pathOf(id)}/replay-missing`, body)
    const left = "had come another way, or can't be sent any more"
    yield* finish(service, begun, { detach, json, left })
  })
).pipe(
  Command.withDescription(
    "Send an endpoint the events since a time that it wants now and never had, and follow it to its end. Each becomes one message, however often this is asked for."
  ),
  Command.withShortDescription("Send an endpoint the events that it never had")
)

const rotate = Command.make(
  "rotate",
  {
    id,
    grace: Flag.Int("grace-seconds").pipe(
      Flag.withDescription("How long the secret before it is good too; a day when left out"),
      Flag.optional
    ),
    secret: optionalText("secret-file", "Read the new secret from this file (- is standard input); else one is made"),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ id, grace, secret, json, ...flags }) {
    const service = yield* orgService(flags)
    // A flag would show in lists of processes.
    const given = Option.isSome(secret) ? { secret: (yield* readText(secret.value)).trim() } : {}
    const body = { ...Record.getSomes({ graceSeconds: grace }), ...given }
    const after = yield* service.post<{ secret?: string; publicKey?: string; previousUntil: string | null }>(
      `${pathOf(id)}/secret/rotate`,
      body
    )
    if (json) return yield* printJson(after)
    yield* print(after.publicKey ?? after.secret ?? "")
    const { previousUntil } = after
    yield* note(
      previousUntil === null
        ? "no secret before it is good any more"
        : `the secret before it is good until ${previousUntil}`
    )
  })
).pipe(
  Command.withDescription(
    "Give an endpoint a new secret, and print it (of Ed25519 the public key). Until the grace ends every request is signed by both."
  ),
  Command.withShortDescription("Rotate the secret of an endpoint")
)

export const endpoints = Command.make("endpoints").pipe(
  Command.withDescription(
    "Look after webhook endpoints. `destinations` stops and starts them, like every destination."
  ),
  Command.withShortDescription("Webhook endpoints: health, test, recover, replay-missing, rotate"),
  Command.withSubcommands([health, test, recover, replayMissing, rotate, ...plainVerbs("endpoints")])
)
