/** `posthaste event-types`: the catalogue of the types of events. */
import { Effect, Option, Record, Stream } from "effect"
import { Argument, Command } from "effect/cli"
import type { EventType } from "../../sdk/src/api.ts"
import { rawJson, readText, requestText } from "./requestText.ts"
import { optionalText, orgService, serviceFlags, switchFlag } from "./service.ts"
import { note, print, printJsonLine, table } from "./terminal.ts"

const name = Argument.String("name").pipe(Argument.withDescription("The type, such as order.paid"))

const pathOf = (name: string) => `/event-types/${encodeURIComponent(name)}`

const list = Command.make(
  "list",
  { archived: switchFlag("archived", "Archived ones too"), ...serviceFlags },
  Effect.fnUntraced(function* ({ archived, json, ...flags }) {
    const service = yield* orgService(flags)
    const query = { limit: "200", ...(archived && { archived: "true" }) }
    const found = service.items<EventType>("/event-types", query)
    if (json) return yield* Stream.runForEach(found, printJsonLine)
    const rows = yield* Stream.runCollect(
      Stream.map(found, ({ name, schema, enforce, description }) => [
        name,
        schema === null ? "no schema" : enforce ? "enforced" : "schema",
        description ?? ""
      ])
    )
    yield* rows.length === 0 ? note("the catalogue is empty") : print(table(rows))
  })
).pipe(Command.withDescription("The types of the catalogue by name. With --json one a line."))

const show = Command.make(
  "show",
  { name, ...serviceFlags },
  Effect.fnUntraced(function* ({ name, json: _, ...flags }) {
    const { text } = yield* (yield* orgService(flags)).call("GET", pathOf(name))
    yield* print(text)
  })
).pipe(Command.withDescription("One type as JSON, with its schema and its example."))

const definition = {
  description: optionalText("description", "What it means"),
  schema: optionalText("schema", "The file of its JSON Schema, draft 2020-12 (- is standard input)"),
  example: optionalText("example", "Data of an event as it may come, as JSON"),
  enforce: switchFlag("enforce", "Refuse events that do not fit the schema"),
  ...serviceFlags
}

const writing = (word: "add" | "change") =>
  Command.make(
    word,
    { name, ...definition },
    Effect.fnUntraced(function* ({ name, description, schema, example, enforce, json, ...flags }) {
      const fields = {
        ...(word === "add" && { name }),
        ...Record.getSomes({ description }),
        ...(enforce && { enforce })
      }
      const raw: Record<string, string> = {}
      if (Option.isSome(schema)) raw["schema"] = yield* rawJson(schema.value, yield* readText(schema.value))
      if (Option.isSome(example)) raw["example"] = yield* rawJson("--example", example.value)
      const request = requestText(fields, raw)
      const service = yield* orgService(flags)
      const { text } = yield* word === "add"
        ? service.call("POST", "/event-types", request)
        : service.call("PUT", pathOf(name), request)
      yield* json ? print(text) : print(name)
    })
  )

const archive = Command.make(
  "archive",
  { name, ...serviceFlags },
  Effect.fnUntraced(function* ({ name, json, ...flags }) {
    yield* (yield* orgService(flags)).call("DELETE", pathOf(name))
    yield* json ? printJsonLine({ archived: name }) : print(`${name} is archived`)
  })
).pipe(Command.withDescription("Take a type out of the catalogue. Its name stays taken; `change` brings it back."))

export const eventTypes = Command.make("event-types").pipe(
  Command.withDescription(
    "The catalogue of event types: what they mean, their schemas, and whether those are enforced."
  ),
  Command.withShortDescription("The catalogue of event types"),
  Command.withSubcommands([
    list,
    show,
    writing("add").pipe(Command.withDescription("Add a type to the catalogue.")),
    writing("change").pipe(
      Command.withDescription(
        "Give a type another definition, as a whole: what is left out is gone. It brings an archived type back."
      )
    ),
    archive
  ])
)
