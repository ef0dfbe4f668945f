/**
 * A page of large rows: the server sends no more of them than a page may have, and whoever follows the cursors gets all. Each row here has
 * 100 kB, and a page asks for 200.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventTypes } from "../../../src/application/ports/EventTypes.ts"
import {
  PAGE_READ_BYTES,
  type Page,
  type PageRequest,
  type StoreUnavailable
} from "../../../src/application/ports/errors.ts"
import { Replays } from "../../../src/application/ports/Replays.ts"
import { OrgId } from "../../../src/domain/ids.ts"
import * as Channels from "../../../src/setup/channels.ts"
import * as PostgresPorts from "../../../src/setup/postgresPorts.ts"
import { freshDatabase } from "../../servers/freshDatabase.ts"

const acme = OrgId.make("acme")
const ROWS = 45
const BYTES = 100_000

const fill = `
  insert into destination (id, org_id, channel, version, settings, secrets, created_at, updated_at)
    select gen_random_uuid(), 'acme', 'webhook', 1, json_build_object('text', repeat('x', ${BYTES})), '{}', now(), now()
    from generate_series(1, ${ROWS}) n;
  insert into event_type (id, org_id, name, version, schema, enforce, created_at, updated_at)
    select gen_random_uuid(), 'acme', n::text, 1, json_build_object('text', repeat('x', ${BYTES})), false, now(), now()
    from generate_series(1, ${ROWS}) n;
  insert into replay (id, org_id, selection, requested_at, matched, next_at)
    select gen_random_uuid(), 'acme', json_build_object('filter', json_build_object('to', repeat('x', ${BYTES}))), now(), 0, 'infinity'
    from generate_series(1, ${ROWS}) n;`

type Ports = Destinations | EventTypes | Replays
type Read = (page: PageRequest) => Effect.Effect<Page<object>, StoreUnavailable, Ports>

const lists: Readonly<Record<string, Read>> = {
  destinations: (page) => Effect.flatMap(Destinations, ({ list }) => list(acme, {}, page)),
  "event types": (page) => Effect.flatMap(EventTypes, ({ list }) => list(acme, true, page)),
  replays: (page) => Effect.flatMap(Replays, ({ list }) => list(acme, page))
}

const database = Layer.unwrap(
  Effect.map(freshDatabase, (url) =>
    Layer.merge(
      PostgresPorts.layer({ url, encryptionKey: Redacted.make(new Uint8Array(32)) }),
      Layer.effectDiscard(
        Effect.promise(async () => {
          const client = new pg.Client({ connectionString: Redacted.value(url), options: "-c search_path=posthaste" })
          await client.connect()
          await client.query(fill)
          await client.end()
        })
      )
    )
  )
).pipe(Layer.merge(Channels.unused))

it.layer(database, {
  timeout: 60_000,
  excludeTestServices: true
})("pages of large rows", (it) => {
  for (const [list, read] of Object.entries(lists))
    it.effect(
      `of ${list} have so many bytes, and lead on to all`,
      () =>
        Effect.gen(function* () {
          let count = 0
          let pages = 0
          for (let cursor: string | null = null; ; ) {
            const page: Page<object> = yield* read({ limit: 200, cursor })
            count += page.items.length
            pages += 1
            expect(JSON.stringify(page.items).length).toBeLessThan(PAGE_READ_BYTES + 2 * BYTES)
            if (page.nextCursor === null) break
            expect(page.items.length).toBeGreaterThanOrEqual(PAGE_READ_BYTES / BYTES)
            cursor = page.nextCursor
          }
          expect(count).toBe(ROWS)
          expect(pages).toBe(Math.ceil(ROWS / Math.ceil(PAGE_READ_BYTES / BYTES)))
        }),
      60_000
    )
})
