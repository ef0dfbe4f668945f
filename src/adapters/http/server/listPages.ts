/** Pages of lists, of at most 200 items. Orgs take turns at the connections that lists are read with. */
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { ProjectionName } from "../../../application/log/projections/Projection.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "./auth.ts"
import { cursorsOf } from "./cursor.ts"
import { freshness, LIMIT_DEFAULT } from "./fields.ts"
import { Quotas } from "./quotas.ts"

/** Reads a list or a count of the org that asks. */
export const asReader = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Quotas, ({ reads }) => Effect.flatMap(ActingOrg, (org) => reads.withPermit(org)(effect)))

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

/** What one item is in the API, as data, and how what is read becomes it. */
interface Kind<Item, Json> {
  readonly of: Schema.Codec<Json, unknown>
  readonly json: (item: Item) => Json
}

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
  { limit = LIMIT_DEFAULT, cursor }: PageQuery,
  read: (orgId: OrgId, page: Page) => Effect.Effect<Items<Item>, E, R>,
  kind: Kind<Item, Json>,
  beside: Schema.Json = {}
) {
  const orgId = yield* ActingOrg
  const { seal, open } = yield* cursorsOf(list)
  const from = cursor === undefined ? null : yield* open(cursor)
  const { items, nextCursor } = yield* asReader(read(orgId, { limit, cursor: from }))
  const encode = encoderOf(kind.of)
  const end = { nextCursor: nextCursor === null ? null : seal(nextCursor), ...(beside as object) }
  const text = `{"items":[${items.map((item) => JSON.stringify(encode(kind.json(item)))).join()}],${JSON.stringify(end).slice(1)}`
  return HttpServerResponse.text(text, { contentType: "application/json" })
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
