/** `posthaste stats`. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import {
  type Aged,
  lateness,
  noteLateness,
  noteTroubles,
  orgService,
  type Service,
  serviceFlags,
  switchFlag,
  type Trouble,
  troubleLine
} from "./service.ts"
import {
  clearScreen,
  colourOf,
  fromNow,
  grouped,
  type Paints,
  paints,
  print,
  printJson,
  printJsonLine,
  table
} from "./terminal.ts"

interface Stats extends Aged {
  readonly byStatus: Readonly<Record<string, number>>
  readonly oldestDueAt: string | null
  readonly troubles: ReadonlyArray<Trouble>
}

const read = (service: Service) => service.get<Stats>("/outbound/stats")

const textOf = (paint: Paints, stats: Stats): string => {
  const { byStatus, oldestDueAt } = stats
  const counts = Object.entries(byStatus)
  const width = Math.max(...counts.map(([, count]) => grouped(count).length))
  const rows = table(counts.map(([status, count]) => [status, grouped(count).padStart(width)])).split("\n")
  const lines = rows.map((row, nth) => (counts[nth]![1] === 0 ? paint.dim(row) : colourOf(paint, counts[nth]![0])(row)))
  const late =
    oldestDueAt === null
      ? "no message is overdue"
      : `the oldest overdue message was due at ${oldestDueAt} (${fromNow(oldestDueAt, Date.now())})`
  return [...lines, "", late].join("\n")
}

const EVERY = "1 second"

export const stats = Command.make(
  "stats",
  {
    watch: switchFlag("watch", "Look again every second; with --json a line each time").pipe(Flag.withAlias("w")),
    ...serviceFlags
  },
  Effect.fnUntraced(function* ({ watch, json, ...flags }) {
    const service = yield* orgService(flags)
    const paint = yield* paints
    if (!watch) {
      const found = yield* read(service)
      yield* noteLateness(found)
      yield* noteTroubles(found.troubles)
      return yield* json ? printJson(found) : print(textOf(paint, found))
    }
    for (;;) {
      const found = yield* read(service)
      const top = process.stdout.isTTY ? clearScreen : ""
      const behind = lateness(found)
      const wrong = found.troubles.map((trouble) => troubleLine(trouble, Date.now()))
      yield* json
        ? printJsonLine(found)
        : print([`${top}${textOf(paint, found)}`, ...(behind === null ? [] : [behind]), ...wrong].join("\n"))
      yield* Effect.sleep(EVERY)
    }
  })
).pipe(
  Command.withDescription("How many messages are in each status, and the due time of the oldest overdue message."),
  Command.withShortDescription("Count messages by status")
)
