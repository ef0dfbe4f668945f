/** Small values of a start without settings, each in a file that only its owner can read. */
import * as fs from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Result, Schema } from "effect"

export class DataFileFailed extends Schema.TaggedError<DataFileFailed>()("DataFileFailed", {
  message: Schema.String
}) {}

export const dataFileFailed = (message: string) => new DataFileFailed({ message })

interface DataFile {
  readonly path: string
  /** Null when never written. */
  readonly read: Effect.Effect<string | null, DataFileFailed>
  readonly write: (value: string) => Effect.Effect<void, DataFileFailed>
  /** Keeps an existing value. */
  readonly create: (value: string) => Effect.Effect<void, DataFileFailed>
}

export const dataFile = (directory: string, name: string): DataFile => {
  const path = join(directory, name)
  const put = (value: string, place: (aside: string) => void) =>
    disk(() => {
      fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
      // Written aside, flushed and moved: neither a kill nor a power loss leaves half a key.
      const aside = `${path}.${process.pid}`
      fs.rmSync(aside, { force: true })
      onDisk(fs.openSync(aside, "wx", 0o600), (file) => fs.writeSync(file, `${value}\n`))
      place(aside)
      onDisk(fs.openSync(directory, "r"), () => {})
    })
  return {
    path,
    read: disk(() => (fs.existsSync(path) ? fs.readFileSync(path, "utf8").trim() : null)),
    write: (value) => put(value, (aside) => fs.renameSync(aside, path)),
    create: (value) =>
      put(value, (aside) => {
        // A link, unlike a rename, keeps a file that another start put there.
        const linked = Result.try(() => fs.linkSync(aside, path))
        fs.rmSync(aside)
        if (Result.isFailure(linked) && !fs.existsSync(path)) throw linked.failure
      })
  }
}

/**
 * One level at a time: Node's recursive mkdir never returns where a file system takes no directories, such as /proc.
 */
export const makeDataDirectory = (directory: string): Effect.Effect<void, DataFileFailed> =>
  Effect.try({
    try: () => makeDirectory(directory),
    catch: (cause) =>
      dataFileFailed(
        `can't use the data directory ${directory}: ${(cause as Error).message} (set another POSTHASTE_DATA_DIR)`
      )
  })

const makeDirectory = (directory: string): void => {
  if (fs.existsSync(directory)) {
    if (!fs.statSync(directory).isDirectory()) throw new Error(`${directory} is no directory`)
    return
  }
  makeDirectory(dirname(directory))
  const made = Result.try(() => fs.mkdirSync(directory, { mode: 0o700 }))
  if (Result.isFailure(made) && !fs.existsSync(directory)) throw made.failure
}

export const apiUrl = (dataDir: string): DataFile => dataFile(dataDir, "api-url")

const onDisk = (file: number, use: (file: number) => void) => {
  use(file)
  fs.fsyncSync(file)
  fs.closeSync(file)
}

/** `make` generates the value the first time; `problemOf` judges a kept one. */
export const readOrCreate = Effect.fnUntraced(function* (
  { path, read, create }: DataFile,
  make: () => string,
  problemOf: (value: string) => string | null
) {
  if ((yield* read) === null) yield* create(make())
  const kept = (yield* read) ?? ""
  const problem = kept === "" ? "is empty" : problemOf(kept)
  if (problem === null) return kept
  return yield* dataFileFailed(`${path} ${problem}: bring it back from a backup`)
})

const disk = <A>(use: () => A): Effect.Effect<A, DataFileFailed> =>
  Effect.try({ try: use, catch: (cause) => dataFileFailed((cause as Error).message) })
