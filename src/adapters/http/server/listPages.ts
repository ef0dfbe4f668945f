/** Pages of lists, of at most 200 items. Orgs share the connections that lists are read with. */
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { Freshness } from "../../../application/log/Freshness.ts"
import type { ProjectionName } from "../../../application/log/projections/Projection.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "./auth.ts"
import { cursorsOf } from "./cursor.ts"
import { freshness, LIMIT_DEFAULT } from "./fields.ts"
import { Quotas } from "./quotas.ts"

export const asReader = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Quotas, ({ reads }) => Effect.flatMap(ActingOrg, (org) => reads.withPermit(org)(effect)))

export interface PageQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** A `PageQuery` with the store's cursor. */
export interface Page {
  readonly limit: number
  readonly cursor: string | null
}

interface Items<Item> {
  readonly items: ReadonlyArray<Item>
  readonly nextCursor: string | null
}

interface Kind<Item, Json> {
  readonly of: Schema.Codec<Json, unknown>
  readonly json: (item: Item) => Json
}

const encoders = new WeakMap<object, (value: unknown) => unknown>()

/** An encoder costs more to make than to use. */
const encoderOf = (schema: Schema.ConstraintCodec<unknown>): ((value: unknown) => unknown) => {
  const encode = encoders.get(schema) ?? Schema.encodeUnknownSync(Schema.toCodecJson(schema))
  encoders.set(schema, encode)
  return encode
}

/** One page of a list of the org, read with the store's own cursor. */
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

/** A page of a projection, with how far it is behind the facts. */
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

/** No org's name, so its cursors fit no org. */
const nobody = "" as OrgId

/** A page of a list in memory; its cursor counts the items before it. */
export const partOf = <Item>(all: ReadonlyArray<Item>, { cursor, limit }: Page): Items<Item> => {
  const from = Number(cursor ?? 0)
  const next = from + limit
  return { items: all.slice(from, next), nextCursor: next < all.length ? String(next) : null }
}

/** A short list in one page. */
export const onePage = <Item>(items: ReadonlyArray<Item>): Items<Item> => ({ items, nextCursor: null })
