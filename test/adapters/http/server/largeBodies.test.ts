/**
 * A body that takes the event loop for long is decoded in a turn of its org, by its bytes; a small one at once. One of many bytes is
 * received in turns too, and leaves no memory to be collected.
 */
import { Readable } from "node:stream"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { HttpServerRequest } from "effect/http"
import { Door, layer } from "../../../../src/adapters/http/server/door.ts"
import { limits, readJson, useJsonBytes } from "../../../../src/adapters/http/server/requestBody.ts"
import { PIECE, type Turns } from "../../../../src/adapters/http/server/turns.ts"
import { AskedFor } from "../../../../src/application/askedFor.ts"
import { OrgId } from "../../../../src/domain/ids.ts"

type Taken = ReadonlyArray<readonly [who: string, weight: number]>

/** The turns that `effect` takes, of whom and how much of each. */
const withTurns = <A, E>(effect: Effect.Effect<A, E, Door>) =>
  Effect.gen(function* () {
    const taken: Array<Taken[number]> = []
    const turns = {
      take: (who: string, weight: number, begin: () => void) => {
        taken.push([who, weight])
        begin()
      }
    }
    const door = yield* Door
    const exit = yield* Effect.exit(Effect.provideService(effect, Door, { ...door, turns }))
    return { exit, taken: taken as Taken }
  }).pipe(Effect.provide(layer(null)))

/** The turns that reading a text of so many bytes takes. */
const turnsFor = (bytes: number, org: OrgId | null) =>
  Effect.gen(function* () {
    const request = new Request("http://posthaste.example", {
      method: "POST",
      // What asks for another protocol is read by means that a request without a socket has, too.
      headers: { "content-type": "application/json", upgrade: "h2c" },
      body: JSON.stringify("x".repeat(bytes - 2))
    })
    const read = readJson(HttpServerRequest.fromWeb(request), limits.single)
    const { exit, taken } = yield* withTurns(Effect.provideService(read, AskedFor, org))
    expect((yield* exit).text).toHaveLength(bytes)
    return taken
  })

const CHUNK = 64 * 1024

/** `count` pieces of a body, which come two in one piece of memory where they share it. */
const chunksOf = (count: number, shares = false): ReadonlyArray<Uint8Array<ArrayBuffer>> =>
  Array.from({ length: count }, (_, n) => n).flatMap((n) => {
    if (!shares) return [new Uint8Array(CHUNK).fill(n)]
    const both = new ArrayBuffer(2 * CHUNK)
    return n % 2 === 1 ? [] : [0, 1].map((half) => new Uint8Array(both, half * CHUNK, CHUNK).fill(n + half))
  })

const isWhole = (bytes: Uint8Array) => Effect.succeed(Buffer.concat(chunksOf(16)).equals(bytes))

/** As Node's server has it; all that has come waits to be read. */
const asNodeHas = (request: HttpServerRequest.HttpServerRequest, chunks: ReadonlyArray<Uint8Array>, isWhole = true) => {
  const source = new Readable({ read: () => {} })
  for (const chunk of chunks) source.push(chunk)
  if (isWhole) source.push(null)
  return {
    source,
    request: new Proxy(request, {
      get: (target, key) => (key === "source" ? source : Reflect.get(target, key, target))
    })
  }
}

interface Sent {
  readonly announced?: number | null
  readonly limit?: number
  /** What asks for another protocol is read by other means. */
  readonly isPlain?: boolean
}

const requestOf = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>, { announced, isPlain = true }: Sent) =>
  HttpServerRequest.fromWeb(
    new Request("http://posthaste.example", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(announced !== null && { "content-length": String(announced ?? chunks.length * CHUNK) }),
        ...(!isPlain && { upgrade: "h2c" })
      },
      body: new ReadableStream({
        start: (controller) => {
          for (const chunk of chunks) controller.enqueue(chunk)
          controller.close()
        }
      }),
      duplex: "half"
    } as RequestInit)
  )

/** What `use` makes of them, and the turns that receiving them took. */
const used = <A, E>(
  chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>,
  sent: Sent,
  use: (bytes: Uint8Array) => Effect.Effect<A, E>
) => {
  const { isPlain = true, limit = limits.batch } = sent
  const request = requestOf(chunks, sent)
  return withTurns(useJsonBytes(isPlain ? asNodeHas(request, chunks).request : request, limit, "acme", use))
}

const means = [{ isPlain: true }, { isPlain: false }]

/** Node reads on in turns of the loop of its own: it has come to this, and stays there. */
const settledAt = (value: () => number, expected: number) =>
  Effect.promise(async () => {
    for (let turn = 0; turn < 100 && value() !== expected; turn++) await new Promise(setImmediate)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect(value()).toBe(expected)
  })

describe("a body", () => {
  it.effect("waits for a turn of its org that is as long as the body", () =>
    Effect.gen(function* () {
      const acme = OrgId.make("acme")
      expect(yield* turnsFor(1_000, acme)).toEqual([])
      expect(yield* turnsFor(limits.single / PIECE, acme)).toEqual([])
      expect(yield* turnsFor(limits.single / 2, acme)).toEqual([["acme", PIECE / 2]])
      expect(yield* turnsFor(limits.single, acme)).toEqual([["acme", PIECE]])
      expect(yield* turnsFor(limits.single, null)).toEqual([])
    })
  )

  it.effect("of many bytes is received in turns of its org, whether or not it was announced", () =>
    Effect.gen(function* () {
      for (const by of means) {
        for (const announced of [16 * CHUNK, null]) {
          const { exit, taken } = yield* used(chunksOf(16), { announced, ...by }, isWhole)
          expect(yield* exit).toBe(true)
          expect(taken).toEqual(Array(4).fill(["acme", PIECE]))
        }
        const { exit } = yield* used(chunksOf(16), { announced: null, limit: 15 * CHUNK, ...by }, isWhole)
        expect(Exit.findError(exit)).toMatchObject({ success: { body: { status: 413 } } })
      }
    })
  )

  it.effect(
    "of many bytes leaves no memory behind, however its use ends, and however much of it waits to be read",
    () =>
      Effect.gen(function* () {
        for (const by of means) {
          for (const use of [Effect.void, Effect.fail("no")]) {
            const chunks = chunksOf(16)
            let whole: ArrayBufferLike | undefined
            yield* used(chunks, by, (bytes) => {
              whole = bytes.buffer
              return use
            })
            expect(
              [...chunks.map(({ buffer }) => buffer), whole as ArrayBuffer].map(({ detached }) => detached)
            ).toEqual(Array(17).fill(true))
          }
        }
      })
  )

  it.effect("of many bytes is read no further than its org's turn, and not at all once nobody waits for it", () =>
    Effect.gen(function* () {
      const chunks = chunksOf(16)
      const { source, request } = asNodeHas(requestOf(chunks, {}), chunks, false)
      let begin: () => void = () => {}
      const turns: Turns = { take: (_, __, next) => (begin = next), exceed: () => {} }
      const door = { ...(yield* Door), turns }
      const read = Effect.provideService(
        useJsonBytes(request, limits.batch, "acme", () => Effect.void),
        Door,
        door
      )
      const fiber = yield* Effect.forkChild(read, { startImmediately: true })
      const receivedOf = () => chunks.filter(({ buffer }) => buffer.detached).length
      yield* settledAt(receivedOf, 4)
      begin()
      yield* settledAt(receivedOf, 8)
      yield* Fiber.interrupt(fiber)
      expect(source.listenerCount("data")).toBe(0)
      begin()
      yield* settledAt(() => source.readableLength, 0)
      expect(receivedOf()).toBe(8)
    }).pipe(Effect.provide(layer(null)))
  )

  it.effect("of many bytes that ends before it is complete is refused", () =>
    Effect.gen(function* () {
      const chunks = chunksOf(16)
      const { source, request } = asNodeHas(requestOf(chunks, {}), chunks, false)
      const read = withTurns(useJsonBytes(request, limits.batch, "acme", isWhole))
      const fiber = yield* Effect.forkChild(read, { startImmediately: true })
      yield* settledAt(() => source.readableLength, 0)
      source.destroy()
      const { exit } = yield* Fiber.join(fiber)
      expect(Exit.findError(exit)).toMatchObject({ success: { body: { status: 400 } } })
    })
  )

  it.effect("of many bytes may come in pieces that share their memory", () =>
    Effect.gen(function* () {
      expect(yield* (yield* used(chunksOf(16, true), {}, isWhole)).exit).toBe(true)
      expect(yield* (yield* used(chunksOf(16, true), { isPlain: false }, isWhole)).exit).toBe(true)
    })
  )
})
