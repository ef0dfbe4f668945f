/**
 * The stand-in is worth what a client can't tell apart. This is the client as it comes, without the adapter; with
 * `EVENTSTORE_URL` the same is asked of a real server.
 */
import { randomUUID } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import {
  BACKWARDS,
  END,
  ErrorType,
  EventStoreDBClient,
  type EventType,
  jsonEvent,
  NO_STREAM,
  type ResolvedEvent,
  STREAM_EXISTS,
  streamNameFilter
} from "@eventstore/db-client"
import { Effect } from "effect"
import { eventStore } from "../../servers/eventStore.ts"
import { eventStoreUrl } from "../../servers/eventStoreUrl.ts"

const event = (n: number, id: string = randomUUID()) => jsonEvent({ id, type: "Counted", data: { n } })
const numbers = (events: ReadonlyArray<ResolvedEvent>) => events.map(({ event }) => (event!.data as { n: number }).n)

const all = async (reading: AsyncIterable<ResolvedEvent<EventType>>) => {
  const found: Array<ResolvedEvent> = []
  for await (const each of reading) found.push(each)
  return found
}

const typeOf = (error: unknown) => (error as { readonly type?: unknown }).type

const test = (rule: string, body: (client: EventStoreDBClient, stream: string) => Promise<void>, url = eventStoreUrl) =>
  it.live(
    rule,
    () =>
      Effect.gen(function* () {
        const client = EventStoreDBClient.connectionString(yield* url)
        yield* Effect.promise(() => body(client, `counter-${randomUUID()}`))
        yield* Effect.promise(() => client.dispose())
      }).pipe(Effect.scoped),
    300_000
  )

const old = Effect.map(eventStore({ version: "20.10.5" }), ({ url }) => url)
const cluster = Effect.map(eventStore(), ({ url }) => url.replace("esdb://", "esdb+discover://"))

describe("an EventStoreDB", () => {
  for (const [name, url] of [
    ["by BatchAppend", eventStoreUrl],
    ["by Append, on an old server", old],
    ["found by gossip", cluster]
  ] as const) {
    test(
      `takes an append on the expected revision only, and the same ids there again as done (${name})`,
      async (client, stream) => {
        const first = event(1)
        expect(await client.appendToStream(stream, [first], { expectedRevision: NO_STREAM })).toMatchObject({
          success: true,
          nextExpectedRevision: 0n
        })
        const repeat = await client.appendToStream(stream, [first], { expectedRevision: NO_STREAM })
        expect(repeat.nextExpectedRevision).toBe(0n)
        for (const expectedRevision of [NO_STREAM, 1n, 7n] as const) {
          const refusal = await client.appendToStream(stream, [event(9)], { expectedRevision }).catch((error) => error)
          expect(refusal).toMatchObject({ type: ErrorType.WRONG_EXPECTED_VERSION, actualVersion: 0n })
        }
        await client.appendToStream(stream, [event(2), event(3)], { expectedRevision: 0n })
        await client.appendToStream(stream, [event(4)], { expectedRevision: STREAM_EXISTS })
        expect(numbers(await all(client.readStream(stream)))).toEqual([1, 2, 3, 4])
      },
      url
    )
  }

  test("reads a stream from anywhere, both ways", async (client, stream) => {
    await client.appendToStream(
      stream,
      [1, 2, 3, 4].map((n) => event(n))
    )
    expect(numbers(await all(client.readStream(stream, { fromRevision: 1n, maxCount: 2 })))).toEqual([2, 3])
    const back = { direction: BACKWARDS, fromRevision: END } as const
    expect(numbers(await all(client.readStream(stream, { ...back, maxCount: 2 })))).toEqual([4, 3])
    expect(await all(client.readStream(`${stream}-unknown`)).catch(typeOf)).toBe(ErrorType.STREAM_NOT_FOUND)
  })

  test("forgets a deleted stream and lets it begin again, but not one with a tombstone", async (client, stream) => {
    await client.appendToStream(stream, [event(1)])
    await client.deleteStream(stream)
    expect(await all(client.readStream(stream)).catch(typeOf)).toBe(ErrorType.STREAM_NOT_FOUND)
    await client.appendToStream(stream, [event(2)], { expectedRevision: NO_STREAM })
    expect(numbers(await all(client.readStream(stream)))).toEqual([2])
    await client.tombstoneStream(stream)
    expect(await all(client.readStream(stream)).catch(typeOf)).toBe(ErrorType.STREAM_DELETED)
  })

  test("follows the streams it is asked for, from a position on, and tells checkpoints", async (client, stream) => {
    const { position } = await client.appendToStream(stream, [event(1)])
    let checkpoints = 0
    const following = client.subscribeToAll({
      fromPosition: position!,
      filter: streamNameFilter({
        prefixes: [stream],
        checkpointInterval: 1,
        maxSearchWindow: 10,
        checkpointReached: async () => void checkpoints++
      })
    })
    following.on("error", () => {})
    await client.appendToStream(
      `other-${stream}`,
      Array.from({ length: 30 }, (_, n) => event(n))
    )
    await client.appendToStream(stream, [event(2)])
    await client.appendToStream(stream, [event(3)])
    const found: Array<ResolvedEvent> = []
    for await (const each of following) if (found.push(each) === 2) break
    expect(numbers(found)).toEqual([2, 3])
    expect(checkpoints).toBeGreaterThan(0)
  })

  test("follows one stream too", async (client, stream) => {
    await client.appendToStream(stream, [event(1), event(2)])
    const following = client.subscribeToStream(stream, { fromRevision: 0n })
    following.on("error", () => {})
    await client.appendToStream(stream, [event(3)])
    const found: Array<ResolvedEvent> = []
    for await (const each of following) if (found.push(each) === 2) break
    expect(numbers(found)).toEqual([2, 3])
  })
})
