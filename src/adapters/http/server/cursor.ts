/**
 * Pages of lists, and the cursor of a list in the API: the store's own cursor, made opaque and checked. A cursor that was
 * mistyped, cut or taken from another list is refused instead of starting at a wrong place.
 */
import { crc32 } from "node:zlib"
import { Effect } from "effect"
import type { OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "./auth.ts"
import { LIMIT_DEFAULT } from "./fields.ts"
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

/** What callers say about the page they want. */
export interface PageQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** The same with the store's cursor. */
export interface Page {
  readonly limit: number
  readonly cursor: string | null
}

interface Items<Item> {
  readonly items: ReadonlyArray<Item>
  readonly nextCursor: string | null
}

/** One page of a list of the org: read with the store's own cursor, answered in the words of the API. */
export const pageOf = Effect.fnUntraced(function* <Item, Json, E, R>(
  list: string,
  { limit = LIMIT_DEFAULT, cursor }: PageQuery,
  read: (orgId: OrgId, page: Page) => Effect.Effect<Items<Item>, E, R>,
  json: (item: Item) => Json
) {
  const page = { limit, cursor: yield* openCursor(list, cursor) }
  const { items, nextCursor } = yield* read(yield* ActingOrg, page)
  return { items: items.map(json), nextCursor: sealCursor(list, nextCursor) }
})

/** A list that is never long comes in one page, in the form of every other. */
export const onePage = <Item>(items: ReadonlyArray<Item>): Items<Item> => ({ items, nextCursor: null })
