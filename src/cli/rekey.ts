/** `posthaste rekey`: seals with the newest encryption key what older ones have sealed. */
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { storeSettings } from "../setup/config.ts"
import { json } from "./service.ts"
import { databaseUrl, keys } from "./store.ts"
import { bar, failed, grouped, print, printJson } from "./terminal.ts"

export const rekey = Command.make(
  "rekey",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const given = yield* keys
    if (given === null) {
      return yield* failed("there is no encryption key: set POSTHASTE_ENCRYPTION_KEYS, the newest first")
    }
    const [newest, ...older] = given
    const url = yield* databaseUrl
    const { schema } = yield* storeSettings
    const Postgres = yield* Effect.promise(() => import("../adapters/postgres/Postgres.ts"))
    const { rekey: rekeyAll } = yield* Effect.promise(() => import("../adapters/postgres/destinations/rekey.ts"))
    const progress = yield* bar("sealing anew")
    const rekeyed = yield* rekeyAll(newest!, older, progress.show).pipe(
      Effect.ensuring(progress.end),
      Effect.provide(Layer.fresh(Postgres.layer({ url, schema })))
    )
    if (json) return yield* printJson(rekeyed)
    yield* print(
      rekeyed.values === 0
        ? "The newest key has sealed everything: the older ones can go."
        : `${grouped(rekeyed.values)} values sealed anew, among them those of ${grouped(rekeyed.destinations)} destinations; the older keys can go`
    )
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Seal with the newest of POSTHASTE_ENCRYPTION_KEYS what older ones have sealed. May run beside a working Posthaste that has the same keys; a run that was cut off is repeated."
  ),
  Command.withShortDescription("Seal secrets with the newest encryption key"),
  Command.withExamples([
    { command: "POSTHASTE_ENCRYPTION_KEYS=<new>,<old> posthaste rekey", description: "After a new key was put first" }
  ])
)
