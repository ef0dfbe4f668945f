/**
 * The operator's keys. A key file is read again when it changes; to rotate, add a line, change the callers, remove the
 * old line. A file without a key, or unreadable, changes nothing.
 */
import { readFile } from "node:fs/promises"
import { Effect, type Redacted, Result, type Scope } from "effect"
import type { OperatorKeys } from "../adapters/http/server/auth.ts"
import { bearerKeys } from "./values.ts"

const EVERY = "1 second"

export const keptUpToDate = Effect.fnUntraced(function* (
  first: ReadonlyArray<Redacted.Redacted>,
  file: string | null
): Effect.fn.Return<OperatorKeys, never, Scope.Scope> {
  let keys = first
  if (file === null) return () => keys
  let known: string | null = null
  const look = Effect.gen(function* () {
    const read = yield* Effect.result(Effect.tryPromise(() => readFile(file, "utf8")))
    const text = Result.getOrElse(read, () => "")
    if (text === known) return
    const isFirst = known === null
    known = text
    const found = bearerKeys(text)
    if (Result.isFailure(found) || found.success.length === 0) {
      yield* Effect.logWarning("the file of operator keys holds none that could be read, so the keys stay as they were")
      return
    }
    keys = found.success
    if (!isFirst)
      yield* Effect.logInfo("operator keys were read again").pipe(Effect.annotateLogs({ keys: keys.length }))
  })
  yield* look.pipe(Effect.delay(EVERY), Effect.forever, Effect.forkScoped)
  return () => keys
})
