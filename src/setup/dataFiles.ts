/**
 * Small values that a start without settings keeps in the data directory: keys, the id, port and path of the sample endpoint, and
 * where the API was last. Each value is a file that only its owner can read.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync
} from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Result, Schema } from "effect"

export class DataFileFailed extends Schema.TaggedError<DataFileFailed>()("DataFileFailed", {
  message: Schema.String
}) {}

export interface DataFile {
  readonly path: string
  /** Null when it was never written. */
  readonly read: Effect.Effect<string | null, DataFileFailed>
  readonly write: (value: string) => Effect.Effect<void, DataFileFailed>
  /** Leaves a value that is there. */
  readonly create: (value: string) => Effect.Effect<void, DataFileFailed>
}

export const dataFile = (directory: string, name: string): DataFile => {
  const path = join(directory, name)
  const put = (value: string, place: (aside: string) => void) =>
    disk(() => {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      // Moved into place whole and on the disk: neither a start that is cut off nor a machine that loses its power leaves half a key.
      const aside = `${path}.${process.pid}`
      rmSync(aside, { force: true })
      onDisk(openSync(aside, "wx", 0o600), (file) => writeSync(file, `${value}\n`))
      place(aside)
      onDisk(openSync(directory, "r"), () => {})
    })
  return {
    path,
    read: disk(() => (existsSync(path) ? readFileSync(path, "utf8").trim() : null)),
    write: (value) => put(value, (aside) => renameSync(aside, path)),
    create: (value) =>
      put(value, (aside) => {
        // A link, unlike a rename, leaves what another start has put there meanwhile.
        const linked = Result.try(() => linkSync(aside, path))
        rmSync(aside)
        if (Result.isFailure(linked) && !existsSync(path)) throw linked.failure
      })
  }
}

/**
 * Makes the data directory where it is not there yet. One level after the other: asked for all at once, Node never comes back
 * where a file system takes no directories, such as /proc.
 */
export const makeDataDirectory = (directory: string): Effect.Effect<void, DataFileFailed> =>
  Effect.try({
    try: () => makeDirectory(directory),
    catch: (cause) =>
      new DataFileFailed({
        message: `can't use the data directory ${directory}: ${(cause as Error).message} (set another POSTHASTE_DATA_DIR)`
      })
  })

const makeDirectory = (directory: string): void => {
  if (existsSync(directory)) {
    if (!statSync(directory).isDirectory()) throw new Error(`${directory} is no directory`)
    return
  }
  makeDirectory(dirname(directory))
  const made = Result.try(() => mkdirSync(directory, { mode: 0o700 }))
  // Another start may have been first.
  if (Result.isFailure(made) && !existsSync(directory)) throw made.failure
}

/** Where the API of this data directory is, or was when it ran last. */
export const apiUrl = (dataDir: string): DataFile => dataFile(dataDir, "api-url")

const onDisk = (file: number, use: (file: number) => void) => {
  use(file)
  fsyncSync(file)
  closeSync(file)
}

/** The kept value; `make` generates it the first time. `problemOf` says what is wrong with a value that was kept. */
export const readOrCreate = Effect.fnUntraced(function* (
  { path, read, create }: DataFile,
  make: () => string,
  problemOf: (value: string) => string | null
) {
  if ((yield* read) === null) yield* create(make())
  const kept = (yield* read) ?? ""
  const problem = kept === "" ? "is empty" : problemOf(kept)
  if (problem === null) return kept
  return yield* new DataFileFailed({ message: `${path} ${problem}: bring it back from a backup` })
})

const disk = <A>(use: () => A): Effect.Effect<A, DataFileFailed> =>
  Effect.try({ try: use, catch: (cause) => new DataFileFailed({ message: (cause as Error).message }) })
