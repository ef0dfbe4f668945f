/** `posthaste orgs`: what the operator sets for tenants, and what each has. */
import { Effect, Option, Record, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { rawJson } from "./requestText.ts"
import { operatorFlags, operatorService, optionalText } from "./service.ts"
import { failed, grouped, note, print, printJson, printJsonLine, table } from "./terminal.ts"

/** What can be set, as `PUT /orgs/{id}` takes it. */
interface Settings {
  readonly name: string | null
  readonly suspended: string | null
  readonly limits: Readonly<Record<string, number>>
  readonly retry: object | null
  readonly retention: Readonly<Record<string, number>>
}

interface Org extends Settings {
  readonly id: string
  readonly destinations: number
  readonly waiting: number
  readonly deadLetters: number
}

const id = Argument.String("id").pipe(Argument.withDescription("The org, as keys and X-Org-Id name it"))
const pathOf = (id: string) => `/orgs/${encodeURIComponent(id)}`

const list = Command.make("list", operatorFlags, ({ json, ...flags }) =>
  Effect.gen(function* () {
    const service = yield* operatorService(flags)
    const found = service.items<Org>("/orgs", { limit: "200" })
    if (json) return yield* Stream.runForEach(found, printJsonLine)
    const rows = yield* Stream.runCollect(
      Stream.map(found, ({ id, name, suspended, destinations, waiting, deadLetters }) => [
        id,
        name ?? "",
        `${grouped(destinations)} destinations`,
        `${grouped(waiting)} waiting`,
        `${grouped(deadLetters)} dead letters`,
        suspended === null ? "" : `suspended: ${suspended}`
      ])
    )
    yield* rows.length === 0 ? note("there is no org yet") : print(table(rows))
  })
).pipe(Command.withDescription("Every org with its counts. With --json one a line."))

const show = Command.make(
  "show",
  { id, ...operatorFlags },
  Effect.fnUntraced(function* ({ id, json: _, ...flags }) {
    yield* printJson(yield* (yield* operatorService(flags)).get<Org>(pathOf(id)))
  })
).pipe(Command.withDescription("What is set for an org, and what it has, as JSON."))

const settable = ["name", "suspended", "limits", "retry", "retention"] as const satisfies ReadonlyArray<keyof Settings>

const set = Command.make(
  "set",
  {
    id,
    name: optionalText("name", "Its name, for people"),
    suspended: optionalText("suspended", "Suspend it for this reason: nothing is accepted from it and nothing sent"),
    limits: Flag.String("limit").pipe(
      Flag.withDescription("One limit, such as acceptsPerSecond=200; may be given again"),
      Flag.atLeast(0)
    ),
    retry: optionalText("retry", 'Its retry policy as JSON, such as {"preset": "patient"}'),
    keep: Flag.String("keep").pipe(
      Flag.withDescription("For how many days what ended is kept, such as endedDays=30; may be given again"),
      Flag.atLeast(0)
    ),
    unset: Flag.Literals("unset", settable).pipe(
      Flag.withDescription("What is to be set no longer; may be given again"),
      Flag.atLeast(0)
    ),
    ...operatorFlags
  },
  Effect.fnUntraced(function* ({ id, name, suspended, limits, retry, keep, unset, json, ...flags }) {
    const service = yield* operatorService(flags)
    const org = yield* service.get<Org>(pathOf(id))
    const kept: Partial<Settings> = Object.fromEntries(
      settable.filter((what) => !unset.includes(what)).map((what) => [what, org[what]])
    )
    const given = {
      ...Record.getSomes({ name, suspended }),
      ...(limits.length > 0 && { limits: { ...kept.limits, ...(yield* numbersOf("--limit", limits)) } }),
      ...(keep.length > 0 && { retention: { ...kept.retention, ...(yield* numbersOf("--keep", keep)) } }),
      ...(Option.isSome(retry) && { retry: JSON.parse(yield* rawJson("--retry", retry.value)) as object })
    }
    const { text } = yield* service.call("PUT", pathOf(id), JSON.stringify({ ...kept, ...given }))
    yield* json ? print(text) : print(`${id} is set`)
  })
).pipe(
  Command.withDescription(
    "Set an org's name, limits, retry policy and retention, suspend it, or let it go on (--unset suspended). What is not named stays."
  ),
  Command.withShortDescription("Set what holds for an org"),
  Command.withExamples([
    { command: "posthaste orgs set acme --limit acceptsPerSecond=200 --limit waiting=1000000", description: "Limits" },
    { command: `posthaste orgs set acme --retry '{"preset": "patient"}'`, description: "A retry policy" }
  ])
)

const numbersOf = (flag: string, texts: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(texts, (text) => {
      const [, name, most] = /^([A-Za-z]+)=([0-9.]+)$/.exec(text) ?? []
      return name === undefined
        ? failed(`${flag} must be a name and a number, such as acceptsPerSecond=200: ${text}`)
        : Effect.succeed([name, Number(most)] as const)
    }),
    Object.fromEntries
  )

export const orgs = Command.make("orgs").pipe(
  Command.withDescription(
    "Tenants: their limits, their retry policy, their retention, their suspension. Needs the operator's key."
  ),
  Command.withShortDescription("Tenants: list, show, set"),
  Command.withSubcommands([list, show, set])
)
