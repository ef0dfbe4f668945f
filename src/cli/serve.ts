/** `posthaste serve`, which is what `npm start` does, and `posthaste migrate`, which only brings the database up to date. */
import { ConfigProvider, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { roles, storeSettings } from "../setup/config.ts"
import { json } from "./service.ts"
import { databaseUrl } from "./store.ts"
import { print, printJson } from "./terminal.ts"

const setting = (flag: string, variable: string, description: string) =>
  Flag.String(flag).pipe(Flag.withDescription(`${description}; else ${variable}`), Flag.optional)

const flags = {
  port: setting("port", "PORT", "Listen here (8080); 0 takes any free port"),
  host: setting("host", "HOST", "Listen on this address (127.0.0.1)"),
  roles: setting("roles", "POSTHASTE_ROLES", `What this process does: ${roles.join(",")} (all)`),
  dataDir: setting("data-dir", "POSTHASTE_DATA_DIR", "Where the embedded database is (.posthaste)"),
  databaseUrl: setting("database-url", "DATABASE_URL", "PostgreSQL to use instead of the embedded one"),
  concurrency: setting("concurrency", "POSTHASTE_CONCURRENCY", "Sends under way at once (512)"),
  allowedNetworks: setting(
    "allowed-networks",
    "POSTHASTE_ALLOWED_NETWORKS",
    "Private networks that may be called (none)"
  )
}

const variables: Readonly<Record<keyof typeof flags, string>> = {
  port: "PORT",
  host: "HOST",
  roles: "POSTHASTE_ROLES",
  dataDir: "POSTHASTE_DATA_DIR",
  databaseUrl: "DATABASE_URL",
  concurrency: "POSTHASTE_CONCURRENCY",
  allowedNetworks: "POSTHASTE_ALLOWED_NETWORKS"
}

/** A flag overrides the variable of the same setting. */
export const serve = Command.make("serve", flags, (given) =>
  Effect.gen(function* () {
    const env = Object.fromEntries(
      Object.entries(variables).flatMap(([flag, variable]) =>
        Option.match(given[flag as keyof typeof flags], { onNone: () => [], onSome: (value) => [[variable, value]] })
      )
    )
    const provider = ConfigProvider.orElse(ConfigProvider.fromEnv({ env }), yield* ConfigProvider.ConfigProvider)
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
