/**
 * The handler of the feed, as server-sent events.
 *
 * The next facts for a subscriber are read only after the last ones have left: a slow subscriber costs no memory and is
 * served from further back in the log. A subscriber that reads nothing is disconnected. Either way it reconnects with
 * the id of its last event and misses nothing.
 */
import type { ServerResponse } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Clock, DateTime, Duration, Effect, Layer, Stream } from "effect"
import { Sse } from "effect/encoding"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type FeedFact, type FeedFilter, readFeed, typeOf } from "../../../application/log/feed.ts"
import { LogReader } from "../../../application/log/LogReader.ts"
import type { Position } from "../../../application/ports/EventStore.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { knownChannel } from "../destinations/knownChannel.ts"
import { Api } from "../server/Api.ts"
import { ActingOrg } from "../server/auth.ts"
import { endless } from "../server/connections.ts"
import { openCursor, sealCursor } from "../server/cursor.ts"
import { answer, tooManyFeeds } from "../server/problem.ts"

export interface FeedOptions {
  readonly heartbeat: Duration.Duration
  /** How long sent data may take to leave; after twice that time the subscriber is disconnected. */
  readonly patience: Duration.Duration
  readonly subscribersMax: number
}

export const defaults: FeedOptions = {
  heartbeat: Duration.seconds(15),
  patience: Duration.seconds(30),
  subscribersMax: 1_000
}

const LIST = "feed"
/** Before the first fact there is no position to reconnect at. */
const BEGINNING = "0"

const idOf = (position: Position | null) => sealCursor(LIST, position ?? BEGINNING)!

const eventOf = ({ logged, message }: FeedFact): string => {
  const { stream, version, name, at, actor, data, position } = logged
  // The fact's data is JSON already.
  const json = `{"stream":${JSON.stringify(stream)},"version":${version},"type":${JSON.stringify(typeOf(logged))},"name":${JSON.stringify(name)},"at":"${DateTime.formatIso(at)}","actor":${JSON.stringify(actor)},"data":${data},"message":${JSON.stringify(message)}}`
  return Sse.encoder.write({ _tag: "Event", event: "message", id: idOf(position), data: json })
}

/** Without data it is no event (Effect's encoder writes none), but browsers remember its id for a reconnection. */
const comment = (position: Position | null, words: string): string => `: ${words}\nid: ${idOf(position)}\n\n`

interface Place {
  readonly position: Position | null
  readonly begun: boolean
}

/** The next events to send; waits for a fact or for a heartbeat to be due. */
const next = (orgId: OrgId, filter: FeedFilter, { heartbeat }: FeedOptions) =>
  Effect.fnUntraced(function* ({ position: from, begun }: Place) {
    if (!begun) return [`retry: 1000\n${comment(from, "following")}`, { position: from, begun: true }] as const
    const log = yield* LogReader
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(heartbeat)
    let position = from
    for (;;) {
      const page = yield* readFeed(orgId, filter, position)
      position = page.position
      const place = { position, begun }
      if (page.items.length > 0) {
        const rest = page.items.at(-1)!.logged.position === position ? "" : comment(position, "up to here")
        return [page.items.map(eventOf).join("") + rest, place] as const
      }
      const left = until - (yield* Clock.currentTimeMillis)
      if (left <= 0) return [comment(position, "nothing new for you"), place] as const
      if (page.isEnd) yield* Effect.timeoutOption(log.news(position), Duration.millis(left))
    }
  })

/** Ends the connection of a subscriber that does not read: while sent data waits, nothing more is written. */
const cutOffWhenStuck = Effect.fnUntraced(function* (response: ServerResponse, patience: Duration.Duration) {
  let written = -1
  for (;;) {
    yield* Effect.sleep(patience)
    const now = response.socket?.bytesWritten ?? 0
    if (response.writableNeedDrain && now === written) return response.destroy()
    written = now
  }
})

const follow = (options: FeedOptions) => {
  let subscribers = 0
  return Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    lastEventId: string | undefined,
    filter: FeedFilter
  ) {
    const orgId = yield* ActingOrg
    yield* knownChannel(filter.channel)
    const log = yield* LogReader
    const seen = yield* openCursor(LIST, lastEventId)
    if (subscribers >= options.subscribersMax) return yield* tooManyFeeds()
    const position = seen === null ? yield* log.end : seen === BEGINNING ? null : seen
    const response = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
    endless.add(response)
    const encoder = new TextEncoder()
    const events = Stream.unfold({ position, begun: false } as Place, next(orgId, filter, options)).pipe(
      Stream.catchTag("StoreUnavailable", () => Stream.succeed(": the store does not answer, come back\n\n")),
      Stream.map((text) => encoder.encode(text)),
      Stream.provideService(LogReader, log)
    )
    const watched = Stream.unwrap(
      Effect.acquireRelease(
        Effect.sync(() => void subscribers++),
        () => Effect.sync(() => void subscribers--)
      ).pipe(Effect.andThen(Effect.forkScoped(cutOffWhenStuck(response, options.patience))), Effect.as(events))
    )
    return HttpServerResponse.stream(watched, {
      contentType: "text/event-stream",
      // A proxy that buffers answers would hold the events back.
      headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
    })
  })
}

export const layerWith = (options: FeedOptions) =>
  Layer.unwrap(
    Effect.sync(() => {
      const handle = follow(options)
      return HttpApiBuilder.group(Api, "feed", (handlers) =>
        handlers.handleRaw("follow", ({ request, headers, query: { lastEventId, ...filter } }) =>
          answer(handle(request, headers["last-event-id"] ?? lastEventId, filter))
        )
      )
    })
  )
