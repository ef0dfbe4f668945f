/** What the routes of every kind of destination have in common: how one is found, listed and found missing. */
import { Effect } from "effect"
import type { Page, StoreUnavailable } from "../../../application/errors.ts"
import { DestinationId, isUuid, type OrgId } from "../../../domain/ids.ts"
import { ActingOrg } from "../server/auth.ts"
import { openCursor, sealCursor } from "../server/cursor.ts"
import { LIMIT_DEFAULT } from "../server/fields.ts"
import { notFound, type Problem } from "../server/problem.ts"

/** A text that is no id at all is answered like an id that belongs to nobody. */
export const idOf = (text: string): Effect.Effect<DestinationId, Problem> =>
  isUuid(text) ? Effect.succeed(DestinationId.make(text)) : Effect.fail(notFound())

export const orNotFound = <A>(found: A | null): Effect.Effect<A, Problem> =>
  found === null ? Effect.fail(notFound()) : Effect.succeed(found)

type List<A> = (
  orgId: OrgId,
  page: { readonly cursor: string | null; readonly limit: number }
) => Effect.Effect<Page<A>, StoreUnavailable>

/** One page of the list of that name, each item as `json` writes it. */
export const listed = Effect.fnUntraced(function* <A, J>(
  name: string,
  list: List<A>,
  json: (item: A) => J,
  query: { readonly limit?: number; readonly cursor?: string }
) {
  const page = { limit: query.limit ?? LIMIT_DEFAULT, cursor: yield* openCursor(name, query.cursor) }
  const { items, nextCursor } = yield* list(yield* ActingOrg, page)
  return { items: items.map(json), nextCursor: sealCursor(name, nextCursor) }
})
