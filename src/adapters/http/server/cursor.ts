/**
 * Pages of lists, and the cursor of a list in the API: the store's own cursor, signed. A cursor that was mistyped, cut,
 * made up, or given out for another list or to another org is refused: what reaches the store is what the store gave out.
 *
 * A page is made in pieces, each in its org's turn, and ends where it has so many bytes. An org has few large ones in memory, and those that
 * have not left yet are among them.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Context, Effect, Layer, Redacted, Result, Schema } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { AskedFor } from "../../../application/askedFor.ts"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { ProjectionName } from "../../../application/log/projections/Projection.ts"
import { BYTES_AT_ONCE, inPieces } from "../../../application/pieces.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "./auth.ts"
import { inTurnsOf } from "./door.ts"
import { freshness, LIMIT_DEFAULT } from "./fields.ts"
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

/** A page ends with the item with which its JSON has so many bytes. Its rows have half of it, so that few pages are read again. */
export const PAGE_BYTES = 2 * 1024 * 1024
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
