/**
 * Small values a start without settings makes up once and keeps in the data directory: keys, and where the
 * sample endpoint is. Each is a file of its own that only its owner can read.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"

export class KeepingFailed extends Schema.TaggedError<KeepingFailed>()("KeepingFailed", { message: Schema.String }) {}

export interface Kept {
  /** Null when it was never written. */
  readonly read: Effect.Effect<string | null, KeepingFailed>
  readonly write: (value: string) => Effect.Effect<void, KeepingFailed>
}

export const kept = (directory: string, name: string): Kept => {
  const file = join(directory, name)
  return {
    read: disk(() => (existsSync(file) ? readFileSync(file, "utf8").trim() : null)),
    write: (value) =>
      disk(() => {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        // Moved into place whole: a start that is cut off must not leave half a key.
        const aside = `${file}.${process.pid}`
        writeFileSync(aside, `${value}\n`, { mode: 0o600 })
        renameSync(aside, file)
      })
  }
}

/** The kept value; made up by `make` the first time. */
export const keptOr = Effect.fnUntraced(function* ({ read, write }: Kept, make: () => string) {
  const known = yield* read
  if (known !== null) return known
  const made = make()
  yield* write(made)
  return made
})

const disk = <A>(use: () => A): Effect.Effect<A, KeepingFailed> =>
  Effect.try({ try: use, catch: (cause) => new KeepingFailed({ message: (cause as Error).message }) })
