/** `posthaste serve` (`npm start`) and `posthaste migrate`. */
import { ConfigProvider, Effect, Record } from "effect"
import { Command } from "effect/cli"
import { storeSettings } from "../setup/config.ts"
import { roles } from "../setup/values.ts"
import { json, optionalText } from "./service.ts"
import { databaseUrl } from "./store.ts"
import { print, printJson } from "./terminal.ts"

const variables: Readonly<Record<string, readonly [flag: string, description: string]>> = {
  PORT: ["port", "Listen here (8080); 0 takes any free port"],
  HOST: ["host", "Listen on this address (127.0.0.1)"],
  POSTHASTE_ROLES: ["roles", `What this process does: ${roles.join(",")} (all)`],
  POSTHASTE_DATA_DIR: ["data-dir", "Where the embedded database is (.posthaste)"],
  DATABASE_URL: ["database-url", "PostgreSQL to use instead of the embedded one"],
  POSTHASTE_CONCURRENCY: ["concurrency", "Sends under way at once (512)"],
  POSTHASTE_ALLOWED_NETWORKS: ["allowed-networks", "Private networks that may be called (none)"]
}

const flags = Record.map(variables, ([flag, description], variable) =>
  optionalText(flag, `${description}; else ${variable}`)
)

export const serve = Command.make("serve", flags, (given) =>
  Effect.gen(function* () {
    const fromFlags = ConfigProvider.fromEnv({ env: Record.getSomes(given) })
    const provider = ConfigProvider.orElse(fromFlags, yield* ConfigProvider.ConfigProvider)
    const { serve: serveAll } = yield* Effect.promise(() => import("../main.ts"))
    yield* Effect.provideService(serveAll, ConfigProvider.ConfigProvider, provider)
  })
).pipe(
  Command.withDescription(
    "Run Posthaste, as npm start does. Without DATABASE_URL it brings its own PostgreSQL and keeps all it needs in the data directory."
  ),
  Command.withShortDescription("Run Posthaste"),
  Command.withExamples([
    { command: "posthaste serve", description: "Everything in one process, on http://127.0.0.1:8080" },
    {
      command: "posthaste serve --roles worker --concurrency 1000",
      description: "A further worker on the same database"
    }
  ])
)

export const migrate = Command.make("migrate", { json }, ({ json }) =>
  Effect.gen(function* () {
    const Postgres = yield* Effect.promise(() => import("../adapters/postgres/Postgres.ts"))
    const ran = yield* Postgres.migrateAt(yield* databaseUrl, (yield* storeSettings).schema)
    if (json) yield* printJson({ ran })
    else if (ran.length === 0) yield* print("The database is up to date: nothing to migrate.")
    else yield* print(ran.map((name) => `ran ${name}`).join("\n"))
  }).pipe(Effect.scoped)
).pipe(
  Command.withDescription(
    "Bring the database up to date and say what ran. serve does the same when it starts; a database that a newer release has migrated is left alone."
  ),
  Command.withShortDescription("Bring the database up to date")
)
