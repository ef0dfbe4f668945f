/** `posthaste rekey`: seals with the newest encryption key what older ones have sealed. */
import { resolve } from "node:path"
import { Effect, Layer, Result } from "effect"
import { Command } from "effect/cli"
import { encryptionKeyOf, encryptionKeys, storeSettings } from "../setup/config.ts"
import { dataFile } from "../setup/dataFiles.ts"
import { json } from "./service.ts"
import { databaseUrl } from "./store.ts"
import { bar, failed, grouped, print, printJson } from "./terminal.ts"

/** Of the environment, or the one that a start without settings made. */
const keys = Effect.gen(function* () {
  const given = yield* encryptionKeys
  if (given !== null) return given
  const { dataDir } = yield* storeSettings
  const kept = yield* dataFile(resolve(dataDir), "encryption-key").read
  const key = kept === null ? null : encryptionKeyOf(kept)
  if (key === null || Result.isFailure(key)) {
    return yield* failed("there is no encryption key: set POSTHASTE_ENCRYPTION_KEYS, the newest first")
  }
  return [key.success]
})

export const rekey = Command.make(
  "rekey",
  { json },
  Effect.fnUntraced(function* ({ json }) {
    const [newest, ...older] = yield* keys
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
        : `${grouped(rekeyed.values)} values of ${grouped(rekeyed.destinations)} destinations sealed anew; the older keys can go`
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
