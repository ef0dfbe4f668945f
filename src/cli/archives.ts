/** `posthaste export` and `import`. */
import { createReadStream, createWriteStream, existsSync } from "node:fs"
import { Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { EventStore } from "../application/ports/EventStore.ts"
import { exportStreams } from "../application/truth/exportStreams.ts"
import { importStreams } from "../application/truth/importStreams.ts"
import { ownLog } from "../application/truth/logStream.ts"
import { json, switchFlag } from "./service.ts"
import { storeLayer } from "./store.ts"
import { bar, Failed, failed, grouped, note, print, printJson } from "./terminal.ts"

const file = (description: string) =>
  Flag.String("file").pipe(Flag.withAlias("f"), Flag.withDescription(description), Flag.optional)

/** Waits for a slow disk or pipe. */
const writer = (path: string | null) =>
  Effect.acquireRelease(
    Effect.sync(() => (path === null ? process.stdout : createWriteStream(path, { flags: "wx", mode: 0o600 }))),
    (out) =>
      out === process.stdout ? Effect.void : Effect.callback<void>((resume) => void out.end(() => resume(Effect.void)))
  ).pipe(
    Effect.map(
      (out) => (text: string) =>
        Effect.callback<void, Failed>((resume) => {
          out.write(text, (error) => resume(error ? failed(`can't write: ${error.message}`) : Effect.void))
        })
    )
  )

const exportCommand = Command.make(
  "export",
  {
    file: file("Write here, a new file; standard output without it"),
    withBodies: switchFlag("with-bodies", "Also bodies and answers, which may hold data that must stay erasable")
  },
  Effect.fnUntraced(function* ({ file, withBodies }) {
    const path = Option.getOrNull(file)
    if (path !== null && existsSync(path)) return yield* failed(`${path} exists already`)
    const { facts } = yield* (yield* EventStore).extent
    const progress = yield* bar("exporting")
    const write = yield* writer(path)
    let lines = 0
    yield* exportStreams(yield* ownLog, withBodies).pipe(
      Stream.runForEachArray((texts) => {
        lines += texts.length
        return Effect.andThen(write(`${texts.join("\n")}\n`), progress.show(lines, Math.max(facts, lines)))
      }),
      Effect.ensuring(progress.end),
      Effect.catchDefect((defect) =>
        defect instanceof Error && defect.name === "WrongSetting"
          ? failed(`a stored body, answer or key can't be read: ${defect.message}`)
          : Effect.die(defect)
      )
    )
    yield* note(`${grouped(lines - 2)} facts${path === null ? "" : ` in ${path}`}`)
  }, Effect.scoped)
).pipe(
  Command.provide(storeLayer(true)),
  Command.withDescription(
    "Every stream as text, a JSON document a line: facts in the order of the log, and idempotency keys. Settings, secrets and API keys are not in it. May run beside a working Posthaste."
  ),
  Command.withShortDescription("Write every stream as text"),
  Command.withExamples([
    { command: "posthaste export --with-bodies --file streams.ndjson", description: "Every stream, with bodies" }
  ])
)

const linesOf = (path: string | null) =>
  Stream.fromAsyncIterable<Buffer, Failed>(
    path === null ? process.stdin : createReadStream(path, { highWaterMark: 1 << 20 }),
    (cause) => new Failed({ message: `can't read ${path ?? "standard input"}: ${(cause as Error).message}` })
  ).pipe(Stream.decodeText(), Stream.splitLines)

const importCommand = Command.make(
  "import",
  { file: file("Read this; standard input without it"), json },
  Effect.fnUntraced(function* ({ file, json }) {
    const path = Option.getOrNull(file)
    const progress = yield* bar("importing")
    const taken = yield* importStreams(linesOf(path), yield* ownLog, ({ known, written }) =>
      progress.show(known + written, known + written)
    ).pipe(Effect.ensuring(progress.end))
    if (json) return yield* printJson(taken)
    const { known, written, isOlder } = taken
    yield* print(
      written > 0
        ? `${grouped(written)} facts imported${known === 0 ? "" : `, after ${grouped(known)} that the store had`}; queue and lists follow them`
        : isOlder
          ? `nothing to import: the store has all ${grouped(known)} facts, and more`
          : `nothing to import: the store has all ${grouped(known)} facts`
    )
  })
).pipe(
  Command.provide(storeLayer(false)),
  Command.withDescription(
    "Fill a store from an export. The store must be empty or hold the beginning of this export: repeat an import that was cut off. No other process may use the store meanwhile."
  ),
  Command.withShortDescription("Fill a store from an export"),
  Command.withExamples([
    {
      command: "DATABASE_URL=postgres://… posthaste import --file streams.ndjson",
      description: "Into an empty database"
    }
  ])
)

export const archives = [exportCommand, importCommand] as const
