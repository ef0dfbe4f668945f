/**
 * The plain verbs of every resource: `posthaste <resource> list|get|create|update|delete`, made from resources.json,
 * which `npm run sdk:types` makes from the OpenAPI document.
 */
import { Effect, Option, Record, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { rawMember } from "../adapters/api/rawJson.ts"
import { confirmed, confirmFlags } from "./confirm.ts"
import { rawJson, readText, requestText } from "./requestText.ts"
import contract from "./resources.json" with { type: "json" }
import { operatorService, optionalText, orgService, serviceFlags } from "./service.ts"
import { note, paints, print, printJsonLine, table } from "./terminal.ts"
import { timeOf } from "./times.ts"

type Field = readonly [name: string, says: string, kind: string]

interface Verb {
  readonly method: string
  readonly path: string
  readonly says: string
  readonly operator?: boolean
  readonly final?: boolean
  readonly fields: ReadonlyArray<ReadonlyArray<string>>
  readonly columns?: ReadonlyArray<string>
}

const all: Readonly<Record<string, Readonly<Record<string, Verb>>>> = contract

const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)

/** `--url` is the service's. */
const flagNameOf = (name: string) => (name === "url" ? "target-url" : kebab(name))

const keyOf = (name: string) => `field ${name}`

const flagsOf = (fields: ReadonlyArray<Field>) =>
  Object.fromEntries(
    fields.map(([name, says, kind]) => [
      keyOf(name),
      optionalText(flagNameOf(name), kind === "json" ? `${says} As JSON, or @ and a file of it.` : says)
    ])
  )

const cell = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value)

const jsonOf = Effect.fnUntraced(function* ([name, , kind]: Field, text: string) {
  if (kind === "time") return JSON.stringify(timeOf(text, new Date(), /deliver|expires/.test(name) ? "ahead" : "ago"))
  if (kind === "text") return JSON.stringify(text)
  return yield* rawJson(`--${flagNameOf(name)}`, text.startsWith("@") ? yield* readText(text.slice(1)) : text)
})

const serviceOf = ({ operator = false }: Verb, flags: { readonly url: string; readonly org: string }) =>
  operator ? operatorService(flags) : orgService(flags)

const given = (fields: ReadonlyArray<Field>, flags: Readonly<Record<string, unknown>>) =>
  fields.flatMap((field) => {
    const value = flags[keyOf(field[0])] as Option.Option<string>
    return Option.isSome(value) ? [[field, value.value] as const] : []
  })

const list = (verb: Verb, fields: ReadonlyArray<Field>) =>
  Command.make(
    "list",
    {
      ...flagsOf(fields),
      most: Flag.Int("limit").pipe(Flag.withDescription("The largest number to list"), Flag.withDefault(50)),
      ...serviceFlags
    },
    Effect.fnUntraced(function* ({ most, json, url, org, ...flags }) {
      const service = yield* serviceOf(verb, { url, org })
      const query = Object.fromEntries(
        given(fields, flags).map(([[name, , kind], text]) => [name, kind === "time" ? timeOf(text, new Date()) : text])
      )
      const found = service
        .items<Readonly<Record<string, unknown>>>(verb.path, { ...query, limit: String(Math.min(most, 200)) })
        .pipe(Stream.take(most))
      if (json) return yield* Stream.runForEach(found, printJsonLine)
      const columns = verb.columns ?? []
      const rows = yield* Stream.runCollect(Stream.map(found, (item) => columns.map((name) => cell(item[name]))))
      if (rows.length === 0) return yield* note("there are none")
      const [head, ...lines] = table([columns, ...rows]).split("\n")
      yield* print([(yield* paints).dim(head!), ...lines].join("\n"))
    })
  )

const get = (verb: Verb) =>
  Command.make(
    "get",
    { id: Argument.String("id"), ...serviceFlags },
    Effect.fnUntraced(function* ({ id, json: _, ...flags }) {
      const service = yield* serviceOf(verb, flags)
      yield* print((yield* service.call("GET", pathTo(verb, id))).text)
    })
  )

const pathTo = ({ path }: Verb, id: string) => path.replace(/\{\w+\}/, encodeURIComponent(id))

const remove = (resource: string, verb: Verb) =>
  Command.make(
    "delete",
    { id: Argument.String("id"), ...confirmFlags, ...serviceFlags },
    Effect.fnUntraced(function* ({ id, json: _, yes, preview, ...flags }) {
      const service = yield* serviceOf(verb, flags)
      if (!(yield* confirmed(`1 of ${resource}: ${id}`, { yes, preview }))) return
      yield* service.call("DELETE", pathTo(verb, id))
      yield* note(`${id} is removed`)
    })
  )

const write = (name: "create" | "update", verb: Verb, fields: ReadonlyArray<Field>) => {
  const flags = {
    ...flagsOf(fields),
    file: optionalText(
      "file",
      "Read the whole request from this file (- is standard input); flags go before its fields"
    ),
    ...(verb.final && confirmFlags),
    ...serviceFlags
  }
  const run = Effect.fnUntraced(function* (id: string, asked: Readonly<Record<string, unknown>>) {
    const {
      file,
      yes,
      preview,
      json: _,
      url,
      org
    } = asked as unknown as { readonly [Name in keyof typeof flags]: never }
    const raw: Record<string, string> = {}
    for (const [field, text] of given(fields, asked)) raw[field[0]] = yield* jsonOf(field, text)
    const inFile = Option.isSome(file)
      ? (JSON.parse(yield* readText((file as Option.Some<string>).value)) as object)
      : {}
    const others = Record.filter(inFile as Record<string, unknown>, (_, field) => !(field in raw))
    const service = yield* serviceOf(verb, { url, org })
    if (verb.method === "PUT") {
      // A replacement unsets absent fields. As text, to keep digits.
      const { text } = yield* service.call("GET", pathTo(verb, id))
      for (const [name] of fields) {
        const before = name in raw || name in others ? null : rawMember(text, name)
        if (before !== null && before !== "null") raw[name] = before
      }
    }
    if (verb.final && !(yield* confirmed(`final: ${verb.says}`, { yes: yes === true, preview: preview === true })))
      return
    const method = verb.method as "POST" | "PUT" | "PATCH"
    yield* print((yield* service.call(method, pathTo(verb, id), requestText(others, raw))).text)
  })
  return verb.path.includes("{")
    ? Command.make(name, { id: Argument.String("id"), ...flags }, ({ id, ...asked }) => run(id, asked))
    : Command.make(name, flags, (asked) => run("", asked))
}

const commandOf = (resource: string, name: string, verb: Verb) => {
  const fields = verb.fields as ReadonlyArray<Field>
  const command = (() => {
    switch (name) {
      case "list":
        return list(verb, fields)
      case "get":
        return get(verb)
      case "delete":
        return remove(resource, verb)
      default:
        return write(name as "create" | "update", verb, fields)
    }
  })()
  // The verbs differ in their flags only.
  return (command as unknown as ReturnType<typeof get>).pipe(Command.withDescription(verb.says))
}

export const plainVerbs = (resource: string, byHand: ReadonlyArray<string> = []) =>
  Object.entries(all[resource]!).flatMap(([name, verb]) =>
    byHand.includes(name) ? [] : [commandOf(resource, name, verb)]
  )

/** The resources without a verb written by hand. */
export const plainResources = (byHand: ReadonlyArray<string>) =>
  Object.keys(all)
    .filter((resource) => !byHand.includes(resource))
    .map((resource) =>
      Command.make(resource).pipe(
        Command.withDescription(
          `The ${resource.replaceAll("-", " ")} of the API: ${Object.keys(all[resource]!).join(", ")}.`
        ),
        Command.withShortDescription(Object.keys(all[resource]!).join(", ")),
        Command.withSubcommands(plainVerbs(resource))
      )
    )
