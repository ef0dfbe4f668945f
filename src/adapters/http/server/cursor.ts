/**
 * The cursor of a list as callers see it: the store's own, made opaque and checked, so that one that was
 * mistyped, cut or taken from elsewhere is refused instead of silently starting somewhere else.
 */
import { crc32 } from "node:zlib"
import { Effect } from "effect"
import { invalidRequest, type Problem } from "./problem.ts"

const CHECK_LENGTH = 8
const check = (list: string, cursor: string) => crc32(`${list} ${cursor}`).toString(16).padStart(CHECK_LENGTH, "0")

/** `list` names what is being paged: a cursor of one list is no cursor of another. */
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
