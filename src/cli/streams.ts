/** `posthaste streams`: stored facts, and the check of the store against them. */
import { DateTime, Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { Archive } from "../application/ports/Archive.ts"
import type { Finding } from "../application/ports/DerivedRows.ts"
import { EventStore } from "../application/ports/EventStore.ts"
import { verify } from "../application/truth/verify.ts"
import { json } from "./service.ts"
import { storeLayer } from "./store.ts"
import { bar, failed, grouped, inLine, note, paints, print, printJsonLine } from "./terminal.ts"

const read = Command.make(
  "read",
  {
    stream: Argument.String("stream").pipe(
      Argument.withDescription("Such as message-<id>, circuit-<destination> or replay-<id>")
    ),
    json
  },
  Effect.fnUntraced(function* ({ stream, json }) {
    const facts = (yield* (yield* Archive).streams([stream])).get(stream)
    if (facts === undefined) return yield* failed(`there is no stream ${stream}`)
    for (const { version, at, name, actor, data, position } of facts) {
      const time = DateTime.formatIso(at)
      if (json) yield* printJsonLine({ stream, version, name, at: time, actor, position, data: parsed(data) })
      else
        yield* print(
          `${String(version).padStart(3)}  ${time}  ${name}${actor === null ? "" : `  by ${actor}`}  ${data}`
        )
    }
  })
).pipe(
  Command.provide(storeLayer(true)),
  Command.withDescription(
    "The facts of one stream as they were written, also those that this release can't read. With --json one a line."
  ),
  Command.withShortDescription("Print the facts of a stream")
)

const parsed = (data: string): unknown => {
  try {
    return JSON.parse(data)
  } catch {
    return data
  }
}

/** The check has printed its violations. */
class Violated extends Schema.TaggedError<Violated>()("Violated", { message: Schema.String }) {}

const lineOf = ({ table, count, examples }: Finding): string => `${table}  ${grouped(count)}: ${examples.join("; ")}`

const verifyCommand = Command.make(
  "verify",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const paint = yield* paints
    const { facts } = yield* (yield* EventStore).extent
    const progress = yield* bar("verifying")
    const verified = yield* verify((read) => progress.show(read, Math.max(facts, read))).pipe(
      Effect.ensuring(progress.end)
    )
    const { findings, streams, messages, waiting, bodiless } = verified
    const violations = findings.reduce((sum, { count }) => sum + count, 0)
    if (json) yield* printJsonLine({ ...verified, violations })
    else for (const finding of findings) yield* print(inLine(paint.red(lineOf(finding))))
    const counted = `${grouped(verified.facts)} facts of ${grouped(streams)} streams, ${grouped(messages)} messages, ${grouped(waiting)} of which wait`
    if (bodiless > 0) yield* note(`${grouped(bodiless)} messages have no body, and no fact says that it was erased`)
    if (violations > 0) return yield* new Violated({ message: `${grouped(violations)} violations among ${counted}` })
    if (!json) yield* print(`${paint.green("no violation")} among ${counted}`)
  })
).pipe(
  Command.provide(storeLayer(true)),
  Command.withDescription(
    "Fold every stream through its law, and check that queue, lines, lists, bodies and circuits agree with the facts: counts and a few examples of each kind of disagreement. May run beside a working Posthaste, and changes nothing. Exit code 1 with a violation."
  ),
  Command.withShortDescription("Check every stream and the rows derived from it")
)

export const streams = Command.make("streams").pipe(
  Command.withDescription(
    "The stored facts themselves: read a stream, check all of them. Works on the store, not on a service."
  ),
  Command.withShortDescription("Read and check the stored facts"),
  Command.withSubcommands([read, verifyCommand])
)
