/**
 * Pages of lists, and the cursor of a list in the API: the store's own cursor, signed. A cursor that was mistyped, cut,
 * made up, or given out for another list or to another org is refused: what reaches the store is what the store gave out.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Context, Effect, Layer, Redacted } from "effect"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { ProjectionName } from "../../../application/log/projections/Projection.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "./auth.ts"
import { LIMIT_DEFAULT } from "./fields.ts"
import { invalidRequest, type Problem } from "./problem.ts"
import { asReader } from "./underWay.ts"

/** Signs with the first, believes each: the keys that processes before and after a rotation sign with. */
export class CursorKeys extends Context.Service<CursorKeys, ReadonlyArray<Buffer>>()(
  "posthaste/adapters/http/server/cursor/CursorKeys"
) {}

/** All processes share the encryption keys, so a cursor leads on at any of them. */
export const cursorKeys = (encryptionKeys: ReadonlyArray<Redacted.Redacted<Uint8Array>>) =>
  Layer.succeed(
    CursorKeys,
    encryptionKeys.map((key) => createHmac("sha256", Redacted.value(key)).update("posthaste cursors").digest())
  )

const SIGNATURE_BYTES = 16

const signature = (key: Buffer, orgId: string, list: string, cursor: string) =>
  createHmac("sha256", key)
    .update(JSON.stringify([orgId, list, cursor]))
    .digest()
    .subarray(0, SIGNATURE_BYTES)

/** What seals and opens the cursors of one list, for the org that asks. */
export const cursorsOf = (list: string) =>
  Effect.gen(function* () {
    const keys = yield* CursorKeys
    const orgId = yield* ActingOrg
    return {
      seal: (cursor: string): string =>
        Buffer.concat([signature(keys[0]!, orgId, list, cursor), Buffer.from(cursor)]).toString("base64url"),
      open: (sealed: string): Effect.Effect<string, Problem> => {
        const bytes = Buffer.from(sealed, "base64url")
        const cursor = bytes.toString("utf8", SIGNATURE_BYTES)
        const signed = bytes.subarray(0, SIGNATURE_BYTES)
        const isOurs =
          signed.length === SIGNATURE_BYTES &&
          // Base64 has several spellings of one text; only ours is.
          bytes.toString("base64url") === sealed &&
          keys.some((key) => timingSafeEqual(signed, signature(key, orgId, list, cursor)))
        return isOurs
          ? Effect.succeed(cursor)
          : Effect.fail(
              invalidRequest("The cursor is not one this list gave out.", [{ field: "cursor", reason: "is not valid" }])
            )
      }
    }
  })

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
  const { seal, open } = yield* cursorsOf(list)
  const page = { limit, cursor: cursor === undefined ? null : yield* open(cursor) }
  const { items, nextCursor } = yield* asReader(read(yield* ActingOrg, page))
  return { items: items.map(json), nextCursor: nextCursor === null ? null : seal(nextCursor) }
})

/** The same, read from a projection: it says how far behind the facts it is. */
export const projectedPageOf = Effect.fnUntraced(function* <Item, Json, E, R>(
  projection: ProjectionName,
  ...page: Parameters<typeof pageOf<Item, Json, E, R>>
) {
  const freshness = yield* (yield* Freshness).of(projection)
  return { ...(yield* pageOf(...page)), ...freshness }
})

/** One page of a list of all orgs, for the operator. */
export const pageOfAll = <Item, Json, E, R>(
  list: string,
  query: PageQuery,
  read: (page: Page) => Effect.Effect<Items<Item>, E, R>,
  json: (item: Item) => Json
) =>
  Effect.provideService(
    pageOf(list, query, (_, page) => read(page), json),
    ActingOrg,
    nobody
  )

/** No org has this name, so its cursors lead nowhere else. */
const nobody = "" as OrgId

/** A page of what is in memory as a whole; a cursor says how many come before it. */
export const partOf = <Item>(all: ReadonlyArray<Item>, { cursor, limit }: Page): Items<Item> => {
  const from = Number(cursor ?? 0)
  const next = from + limit
  return { items: all.slice(from, next), nextCursor: next < all.length ? String(next) : null }
}

/** A list that is never long comes in one page, in the form of every other. */
export const onePage = <Item>(items: ReadonlyArray<Item>): Items<Item> => ({ items, nextCursor: null })
