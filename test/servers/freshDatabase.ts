import { randomUUID } from "node:crypto"
import { Effect, Redacted } from "effect"
import { administer, inDatabase } from "./administer.ts"
import { postgres } from "./postgres.ts"

/** The URL of an empty, migrated database that nobody else uses and that goes away with the scope. */
export const freshDatabase = Effect.gen(function* () {
  const { url, template } = yield* Effect.promise(postgres)
  const name = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const name = `posthaste_test_${randomUUID().replaceAll("-", "")}`
      await administer(url, `create database ${name} template ${template}`)
      return name
    }),
    (name) => Effect.promise(() => administer(url, `drop database if exists ${name} with (force)`))
  )
  return Redacted.make(inDatabase(url, name))
})
