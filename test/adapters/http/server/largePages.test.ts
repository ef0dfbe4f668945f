/**
 * A page of a list is made in pieces, each in its org's turn; it has so many bytes, and its cursor leads on to all that did not fit; and
 * an org has so many large ones in memory, those that nobody has read yet among them.
 */
import { EventEmitter } from "node:events"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { ActingOrg } from "../../../../src/adapters/http/server/auth.ts"
import { cursorKeys } from "../../../../src/adapters/http/server/cursor.ts"
import { Door } from "../../../../src/adapters/http/server/door.ts"
import { PAGE_BYTES, type Page, pageOf, partOf } from "../../../../src/adapters/http/server/listPages.ts"
import { PIECE, type Turns } from "../../../../src/adapters/http/server/turns.ts"
import * as UnderWay from "../../../../src/adapters/http/server/underWay.ts"
import { AT_ONCE, BYTES_AT_ONCE } from "../../../../src/application/pieces.ts"
import { OrgId as Org, type OrgId } from "../../../../src/domain/ids.ts"

const acme = Org.make("acme")

const Thing = Schema.Struct({ n: Schema.Int, text: Schema.String })
type Thing = typeof Thing.Type

interface Asked {
  readonly limit?: number
  readonly cursor?: string
  readonly org?: OrgId
}

/** A list of these, asked for page by page. Each turn that its org waits for is kept, with what was encoded in it. */
const listOf = (things: ReadonlyArray<Thing>) => {
  const turns: Array<{ readonly who: string; weight: number; items: number; bytes: number }> = []
  const read: Array<number> = []
  const ofOrg: Turns = {
    take: (who, weight, begin) => {
      turns.push({ who, weight, items: 0, bytes: 0 })
      begin()
    },
    exceed: (_, weight) => {
      turns.at(-1)!.weight += weight
    }
  }
  const json = (thing: Thing) => {
    const turn = turns.at(-1)!
    turn.items += 1
    turn.bytes += JSON.stringify(thing).length
    return thing
  }
  const ask = ({ limit = 200, cursor, org = acme }: Asked = {}) => {
    const response = Object.assign(new EventEmitter(), { closed: false })
    const page = pageOf(
      "things",
      { limit, cursor },
      (_, page: Page) =>
        Effect.sync(() => {
          read.push(page.limit)
          return partOf(things, page)
        }),
      { of: Thing, json }
    ).pipe(
      Effect.provideService(ActingOrg, org),
      Effect.provideService(Door, { turns: ofOrg } as Door["Service"]),
      Effect.provideService(HttpServerRequest.HttpServerRequest, { response } as never)
    )
    return Effect.map(page, (answer) => ({ ...textOf(answer), sent: () => response.emit("close") }))
  }
  return { ask, turns, read }
}

const textOf = ({ body }: HttpServerResponse.HttpServerResponse) => {
  const text = Buffer.from((body as { readonly body: Uint8Array }).body).toString()
  const page = JSON.parse(text) as { readonly items: ReadonlyArray<Thing>; readonly nextCursor: string | null }
  return { bytes: text.length, ...page }
}

const things = (count: number, bytes: number) =>
  Array.from({ length: count }, (_, n) => ({ n, text: String(n).padEnd(bytes, "x") }))

/** All pages, each sent before the next is asked for. */
const walked = Effect.fnUntraced(function* ({ ask }: ReturnType<typeof listOf>) {
  const pages = []
  for (let cursor: string | undefined; ; ) {
    const page = yield* ask(cursor === undefined ? {} : { cursor })
    page.sent()
    pages.push(page)
    if (page.nextCursor === null) return pages
    cursor = page.nextCursor
  }
})

const keys = cursorKeys([Redacted.make(new Uint8Array(32))])
const layer = Layer.merge(keys, UnderWay.layer)

describe("a page of a list", () => {
  it.effect("of few small items is read once, in one turn, which it leaves to as many more", () =>
    Effect.gen(function* () {
      const list = listOf(things(5, 500))
      expect((yield* list.ask()).items.length).toBe(5)
      expect(list.read).toEqual([200])
      expect(list.turns.map(({ who, weight }) => [who, weight])).toEqual([["acme", Math.ceil((5 / AT_ONCE) * PIECE)]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("of many small items is made so many items in a turn", () =>
    Effect.gen(function* () {
      const list = listOf(things(200, 100))
      expect((yield* list.ask()).items.length).toBe(200)
      expect(list.turns.map(({ items }) => items)).toEqual(Array(200 / AT_ONCE).fill(AT_ONCE))
      expect(list.turns.every(({ weight }) => weight >= PIECE)).toBe(true)
    }).pipe(Effect.provide(layer))
  )

  it.effect("of large items is made so many bytes in a turn, or one item, which counts for what it is", () =>
    Effect.gen(function* () {
      const list = listOf(things(30, BYTES_AT_ONCE / 2))
      yield* walked(list)
      expect(Math.max(...list.turns.map(({ items }) => items))).toBe(2)
      const larger = listOf(things(30, 2 * BYTES_AT_ONCE))
      yield* walked(larger)
      expect(Math.max(...larger.turns.map(({ items }) => items))).toBe(1)
      for (const { items, weight } of larger.turns) expect(weight).toBeGreaterThanOrEqual(2 * PIECE * items)
    }).pipe(Effect.provide(layer))
  )

  it.effect("has so many bytes, and its cursor leads on to all others", () =>
    Effect.gen(function* () {
      const all = things(100, 100_000)
      const pages = yield* walked(listOf(all))
      expect(pages.flatMap(({ items }) => items)).toEqual(all)
      expect(pages.length).toBeGreaterThanOrEqual((100 * 100_000) / PAGE_BYTES)
      for (const { bytes } of pages) expect(bytes).toBeLessThan(PAGE_BYTES + 101_000)
    }).pipe(Effect.provide(layer))
  )

  it.effect("has one item at least, however large it is", () =>
    Effect.gen(function* () {
      const all = things(3, PAGE_BYTES + 1)
      const pages = yield* walked(listOf(all))
      expect(pages.map(({ items }) => items.map(({ n }) => n))).toEqual([[0], [1], [2]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that is large is under way until it has left; a small one only while it is made", () =>
    Effect.gen(function* () {
      const { atOnce } = UnderWay.limits.list
      const large = listOf(things(10, 50_000))
      const small = listOf(things(10, 50))
      const pages = []
      for (let n = 0; n < atOnce; n++) {
        yield* small.ask()
        pages.push(yield* large.ask())
      }
      const refused = yield* Effect.flip(large.ask())
      expect(refused).toMatchObject({ body: { status: 429, type: "urn:posthaste:problem:too-many-lists" } })
      expect((yield* large.ask({ org: Org.make("other") })).items.length).toBe(10)
      pages[0]!.sent()
      expect((yield* large.ask()).items.length).toBe(10)
    }).pipe(Effect.provide(layer))
  )
})
