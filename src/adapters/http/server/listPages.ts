/**
 * Pages of lists. A page is made in pieces, each in its org's turn, and ends where it has so many bytes. An org has few large ones in memory,
 * and those that have not left yet are among them.
 */
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { AskedFor } from "../../../application/askedFor.ts"
import { PAGE_READ_BYTES } from "../../../application/errors.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { ProjectionName } from "../../../application/log/projections/Projection.ts"
import { BYTES_AT_ONCE, inPieces } from "../../../application/pieces.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "./auth.ts"
import { cursorsOf } from "./cursor.ts"
import { inTurnsOf } from "./door.ts"
import { freshness, LIMIT_DEFAULT } from "./fields.ts"
import { asReader } from "./underWay.ts"

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

/** A page ends with the item with which its JSON has so many bytes. What is read for it has half of that, so that few pages are read again. */
export const PAGE_BYTES = 2 * PAGE_READ_BYTES
/** A page beyond it is counted as under way until it has left. */
const LARGE = 256 * 1024

/** What one item is in the API, as data, and how what is read becomes it. */
interface Kind<Item, Json> {
  readonly of: Schema.Codec<Json, unknown>
  readonly json: (item: Item) => Json
}

/** The JSON of the first of these, as many as a page may have. */
const encoded = Effect.fnUntraced(function* <Item, Json>(items: ReadonlyArray<Item>, { of, json }: Kind<Item, Json>) {
  const encode = encoderOf(of)
  const parts: Array<Buffer> = []
  let text = ""
  let count = 0
  let bytes = 0
  yield* inPieces(items.length, (index) => {
    if (bytes >= PAGE_BYTES) return Result.fail("Full")
    const item = JSON.stringify(encode(json(items[index]!)))
    const size = Buffer.byteLength(item)
    text += index === 0 ? item : `,${item}`
    count += 1
    bytes += size
    if (text.length >= BYTES_AT_ONCE) {
      parts.push(Buffer.from(text))
      text = ""
    }
    return Result.succeed(size)
  }).pipe(Effect.ignore)
  return { count, parts: [...parts, Buffer.from(text)] }
})

const encoders = new WeakMap<object, (value: unknown) => unknown>()

/** Making one takes longer than using it. */
const encoderOf = (schema: Schema.ConstraintCodec<unknown>): ((value: unknown) => unknown) => {
  const encode = encoders.get(schema) ?? Schema.encodeUnknownSync(Schema.toCodecJson(schema))
  encoders.set(schema, encode)
  return encode
}

/** One page of a list of the org: read with the store's own cursor, answered in the words of the API. */
export const pageOf = Effect.fnUntraced(function* <Item, Json, E, R>(
  list: string,
  { limit: asked = LIMIT_DEFAULT, cursor }: PageQuery,
  read: (orgId: OrgId, page: Page) => Effect.Effect<Items<Item>, E, R>,
  kind: Kind<Item, Json>,
  beside: Schema.Json = {}
) {
  const orgId = yield* ActingOrg
  const { seal, open } = yield* cursorsOf(list)
  const from = cursor === undefined ? null : yield* open(cursor)
  const page = Effect.gen(function* () {
    for (let limit = asked; ; ) {
      const { items, nextCursor } = yield* read(orgId, { limit, cursor: from })
      const { count, parts } = yield* encoded(items, kind)
      if (count === items.length) {
        const end = { nextCursor: nextCursor === null ? null : seal(nextCursor), ...(beside as object) }
        return Buffer.concat([Buffer.from('{"items":['), ...parts, Buffer.from(`],${JSON.stringify(end).slice(1)}`)])
      }
      // The store knows what leads on from an item only where a page ends.
      limit = count
    }
  })
  const response = NodeHttpServerRequest.toServerResponse(yield* HttpServerRequest.HttpServerRequest)
  const bytes = yield* asReader(inTurnsOf((yield* AskedFor) ?? orgId, page), ({ length }, giveBack) => {
    if (length <= LARGE || response.closed) return false
    response.once("close", giveBack)
    return true
  })
  return HttpServerResponse.uint8Array(bytes, { contentType: "application/json" })
})

const encodeFreshness = Schema.encodeSync(Schema.toCodecJson(Schema.Struct(freshness)))

/** The same, read from a projection: it says how far behind the facts it is. */
export const projectedPageOf = Effect.fnUntraced(function* <Item, Json, E, R>(
  projection: ProjectionName,
  list: string,
  query: PageQuery,
  read: (orgId: OrgId, page: Page) => Effect.Effect<Items<Item>, E, R>,
  kind: Kind<Item, Json>
) {
  const freshness = yield* (yield* Freshness).of(projection)
  return yield* pageOf(list, query, read, kind, encodeFreshness(freshness))
})

/** One page of a list of all orgs, for the operator. */
export const pageOfAll = <Item, Json, E, R>(
  list: string,
  query: PageQuery,
  read: (page: Page) => Effect.Effect<Items<Item>, E, R>,
  kind: Kind<Item, Json>
) =>
  Effect.provideService(
    pageOf(list, query, (_, page) => read(page), kind),
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
