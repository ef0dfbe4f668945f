/** Rows of a projection as parameters: pg's own array escaping takes eleven times as long as a join. */
import type { JournalName } from "../../application/ports/Journals.ts"
import { messageOf } from "../../domain/streams.ts"
import { streamIdOf } from "./PostgresJournals.ts"

/** No text of ours holds it: what people write has no control characters, and JSON escapes them. */
const SEPARATOR = "\u001e"

/** One column of texts; null and the empty text are the same there. */
export const joined = <Row>(rows: ReadonlyArray<Row>, textOf: (row: Row) => string | null): string =>
  rows.map((row) => textOf(row) ?? "").join(SEPARATOR)

/** One column of ids, names, numbers or times, which need no escaping, as the array it is. */
export const listed = <Row>(rows: ReadonlyArray<Row>, itemOf: (row: Row) => string | number | null): string =>
  `{${rows.map((row) => itemOf(row) ?? "NULL").join(",")}}`

/** What the log calls the stream by. */
export const streamIdIn = ({ stream }: { readonly stream: string }): string =>
  messageOf(stream) ?? streamIdOf(stream as JournalName)
