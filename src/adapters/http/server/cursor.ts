/**
 * The cursor of a list in the API: the store's own cursor, made opaque and checked. A cursor that was mistyped, cut or
 * taken from another list is refused instead of starting at a wrong place.
 */
import { crc32 } from "node:zlib"
import { Effect } from "effect"
import { invalidRequest, type Problem } from "./problem.ts"

const CHECK_LENGTH = 8
const check = (list: string, cursor: string) => crc32(`${list} ${cursor}`).toString(16).padStart(CHECK_LENGTH, "0")

/** `list` names the list: a cursor of one list is invalid in another. */
export const sealCursor = (list: string, cursor: string | null): string | null =>
  cursor === null ? null : Buffer.from(check(list, cursor) + cursor).toString("base64url")

export const openCursor = (list: string, sealed: string | undefined): Effect.Effect<string | null, Problem> => {
  if (sealed === undefined) return Effect.succeed(null)
  const text = Buffer.from(sealed, "base64url").toString()
  const cursor = text.slice(CHECK_LENGTH)
  return text.slice(0, CHECK_LENGTH) === check(list, cursor)
    ? Effect.succeed(cursor)
    : Effect.fail(
        invalidRequest("The cursor is not one this list gave out.", [{ field: "cursor", reason: "is not valid" }])
      )
}
