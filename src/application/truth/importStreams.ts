/**
 * Fills a store from an export: facts, data of messages, and the rows derived from both (conditions and restarts:
 * writeHistory.ts). It brings no destinations, secrets or API keys: create destinations first, because a message
 * without one ends in FAILED.
 */
import { Effect, Result, Schema, Stream } from "effect"
import { projectOnce } from "../log/projections/keepProjections.ts"
import { parseLine } from "./archiveFile.ts"
import type { Log } from "./logStream.ts"
import { restoreDerived, Unlawful } from "./restoreDerived.ts"
import { type Incoming, writeHistory } from "./writeHistory.ts"

export class NotAnExport extends Schema.TaggedError<NotAnExport>()("NotAnExport", {
  line: Schema.Int,
  problem: Schema.String
}) {
  override get message(): string {
    return `line ${this.line} ${this.problem}`
  }
}

const factsIn = <E, R>(lines: Stream.Stream<string, E, R>): Stream.Stream<Incoming, E | NotAnExport, R> => {
  let number = 0
  let facts = 0
  let hasEnded = false
  const wrong = (problem: string) => Effect.fail(new NotAnExport({ line: number, problem }))
  const read = Effect.fnUntraced(function* (text: string) {
    number += 1
    if (text === "") return []
    if (hasEnded) return yield* wrong("comes after the end")
    const parsed = parseLine(text)
    if (Result.isFailure(parsed)) return yield* wrong(parsed.failure)
    const { success } = parsed
    if ((success.type === "First") !== (number === 1)) {
      return yield* wrong(number === 1 ? "does not say that this is an export of streams" : "begins another export")
    }
    if (success.type === "First") return []
    if (success.type === "Last") {
      if (success.facts !== facts) return yield* wrong(`says that there are ${success.facts} facts, and ${facts} came`)
      hasEnded = true
      return []
    }
    facts += 1
    if (success.line.position !== facts)
      return yield* wrong(`has position ${success.line.position} instead of ${facts}`)
    return [success.line]
  })
  return lines.pipe(
    Stream.mapEffect(read),
    Stream.flattenIterable,
    Stream.concat(
      Stream.suspend(() =>
        hasEnded ? Stream.empty : Stream.fromEffect(wrong("is the last, and the export goes on: the file was cut off"))
      )
    )
  )
}

export const importStreams = Effect.fnUntraced(function* <E, R>(
  lines: Stream.Stream<string, E, R>,
  log: Log,
  progress: (taken: { readonly known: number; readonly written: number }) => Effect.Effect<void>
) {
  const taken = yield* writeHistory(factsIn(lines), log, progress)
  // A store that only goes on has derived its rows already.
  if (!taken.isOlder) yield* settleIn
  return taken
})

export const settleIn = Effect.gen(function* () {
  yield* restoreDerived((stream, breach) => new Unlawful({ stream, ...breach }))
  while ((yield* projectOnce()) > 0) {}
})
