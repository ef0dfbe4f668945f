/**
 * Small values that a start without settings generates once and keeps in the data directory: keys, and the id and port
 * of the sample endpoint. Each value is a file that only its owner can read.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"

export class DataFileFailed extends Schema.TaggedError<DataFileFailed>()("DataFileFailed", {
  message: Schema.String
}) {}

export interface DataFile {
  /** Null when it was never written. */
  readonly read: Effect.Effect<string | null, DataFileFailed>
  readonly write: (value: string) => Effect.Effect<void, DataFileFailed>
}

export const dataFile = (directory: string, name: string): DataFile => {
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

/** The kept value; `make` generates it the first time. */
export const readOrCreate = Effect.fnUntraced(function* ({ read, write }: DataFile, make: () => string) {
  const known = yield* read
  if (known !== null) return known
  const made = make()
  yield* write(made)
  return made
})

const disk = <A>(use: () => A): Effect.Effect<A, DataFileFailed> =>
  Effect.try({ try: use, catch: (cause) => new DataFileFailed({ message: (cause as Error).message }) })
