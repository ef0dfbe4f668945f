/**
 * The feed, as server-sent events. The next facts are read only after the last ones have left, so a slow subscriber
 * costs no memory; one that reads nothing is disconnected, and reconnects with the id of its last event.
 */
import type { ServerResponse } from "node:http"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Clock, DateTime, Deferred, Duration, Effect, Layer, Schema, Stream } from "effect"
import { Sse } from "effect/encoding"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { type FeedFact, type FeedFilter, readFeed, typeOf } from "../../../application/log/feed.ts"
import { LogReader } from "../../../application/log/LogReader.ts"
import { Admission } from "../../../application/orgs/admission.ts"
import { ApiKeys } from "../../../application/ports/ApiKeys.ts"
import type { Position } from "../../../application/ports/EventStore.ts"
import { text } from "../../../application/ports/fields.ts"
import { Parked } from "../../../application/ports/Parked.ts"
import { type Scope, scopeOfFact, scopeOfType } from "../../../application/ports/scopes.ts"
import type { OrgId } from "../../../domain/ids.ts"
import { statuses } from "../../../domain/message/machine.ts"
import { keptActor } from "../../../domain/recorded.ts"
import { ActingOrg, Caller, OrgAccess } from "../server/auth.ts"
import { endless } from "../server/connections.ts"
import { cursorsOf } from "../server/cursor.ts"
import { about, base, titled } from "../server/endpoints.ts"
import { filters, maybe } from "../server/fields.ts"
import { knownChannel } from "../server/knownChannel.ts"
import { answer, lacking, problemOf, tooMuch } from "../server/problem.ts"
import { leaveQuota, Quotas } from "../server/quotas.ts"

export const feedApi = HttpApiGroup.make("feed")
  .add(
    HttpApiEndpoint.get("follow", "/feed", {
      headers: Schema.Struct({
        "last-event-id": maybe(Schema.String, "The id of the last event seen. Without one it begins now.")
      }),
      query: {
        after: maybe(Schema.String, "The same as Last-Event-ID, for clients that can't send headers."),
        stream: maybe(text(200), "Only facts of this stream, such as message-<id>."),
        type: maybe(text(100), "Only facts of this type, such as AttemptFailed."),
        channel: filters.channel,
        to: filters.to,
        dossierId: filters.dossierId,
        correlationId: filters.correlationId,
        status: maybe(Schema.Literals(statuses), "Only facts after which the message has this status.")
      },
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
      error: problemOf(429)
    }).annotateMerge(
      about(
        "messages:read",
        "Follow the facts of the org as they are stored, as server-sent events. Each event's data is JSON: {stream, version, type, name, at, actor, data, message}, data being what is kept of the fact for ever (ids, times and codes), and message the message after the fact, or null. It goes on where Last-Event-ID says, nothing is left out; an event may come twice. Facts that a scope guards which the key lacks are left out. A comment every 15 seconds shows that it is alive."
      )
    )
  )
  .middleware(OrgAccess)
  .prefix("/api/v1")
  .annotateMerge(titled("Feed", "The facts of the org, live."))

export interface FeedOptions {
  readonly heartbeat: Duration.Duration
  /** Sent data may take so long to leave; after twice that time the subscriber is disconnected. */
  readonly patience: Duration.Duration
  readonly subscribersMax: number
  /** Keeps one org from taking all; the operator may set another number for an org. */
  readonly subscribersOfOrgMax: number
}

export const defaults: FeedOptions = {
  heartbeat: Duration.seconds(15),
  patience: Duration.seconds(30),
  subscribersMax: 1_000,
  subscribersOfOrgMax: 100
}

const LIST = "feed"

const BEGINNING = "0"

type Seal = (cursor: string) => string

const eventOf = (seal: Seal, { logged, message }: FeedFact): string => {
  const { stream, version, name, at, actor, data, position } = logged
  // Of the fact itself only the part that is kept, which is JSON already: what can name a person is told by the message.
  const json = `{"stream":${JSON.stringify(stream)},"version":${version},"type":${JSON.stringify(typeOf(logged))},"name":${JSON.stringify(name)},"at":"${DateTime.formatIso(at)}","actor":${JSON.stringify(keptActor(actor))},"data":${data},"message":${JSON.stringify(message)}}`
  return Sse.encoder.write({ _tag: "Event", event: "message", id: seal(position), data: json })
}

/** Browsers remember the id of an event without data; Effect's encoder writes none. */
const comment = (seal: Seal, position: Position | null, words: string): string =>
  `: ${words}\nid: ${seal(position ?? BEGINNING)}\n\n`

interface Place {
  readonly position: Position | null
  readonly begun: boolean
}

type May = (scope: Scope) => boolean

/** Waits for facts or for the heartbeat. Facts that another scope guards are left out. */
const next = (orgId: OrgId, filter: FeedFilter, may: May, { heartbeat }: FeedOptions, seal: Seal) =>
  Effect.fnUntraced(function* ({ position: from, begun }: Place) {
    if (!begun) return [`retry: 1000\n${comment(seal, from, "following")}`, { position: from, begun: true }] as const
    const log = yield* LogReader
    const { reads } = yield* Quotas
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(heartbeat)
    let position = from
    for (;;) {
      const told = readFeed(orgId, filter, position, (fact) =>
        may(scopeOfFact(fact.logged.name)) ? { position: fact.logged.position, event: eventOf(seal, fact) } : null
      )
      const page = yield* reads.withPermit(orgId)(told)
      position = page.position
      const place = { position, begun }
      const shown = page.items.filter((item) => item !== null)
      if (shown.length > 0) {
        const rest = shown.at(-1)!.position === position ? "" : comment(seal, position, "up to here")
        return [shown.map(({ event }) => event).join("") + rest, place] as const
      }
      const left = until - (yield* Clock.currentTimeMillis)
      if (left <= 0) return [comment(seal, position, "nothing new for you"), place] as const
      if (page.isEnd) yield* Effect.timeoutOption(log.news(position), Duration.millis(left))
    }
  })

/** Ends the connection of a subscriber that does not read. */
const cutOffWhenStuck = Effect.fnUntraced(function* (response: ServerResponse, patience: Duration.Duration) {
  let written = -1
  for (;;) {
    yield* Effect.sleep(patience)
    const now = response.socket?.bytesWritten ?? 0
    if (response.writableNeedDrain && now === written) return response.destroy()
    written = now
  }
})

/** A revoked key must end its feeds within a second. */
const KEYS_EVERY = "400 millis"

/** Ends the feeds of keys that are no longer good, by one question for the whole process. */
const makeKeyWatch = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const watched = new Map<string, Set<Deferred.Deferred<void>>>()
  const look = Effect.gen(function* () {
    if (watched.size === 0) return
    const living = yield* keys.living([...watched.keys()])
    for (const [id, feeds] of watched) {
      if (!living.has(id)) for (const feed of feeds) yield* Deferred.succeed(feed, undefined)
    }
  })
  yield* Effect.ignore(look).pipe(Effect.delay(KEYS_EVERY), Effect.forever, Effect.forkScoped)
  /** An operator's feed ends with its process. */
  const untilRevoked = (keyId: string | null) =>
    Effect.acquireRelease(
      Effect.map(Deferred.make<void>(), (ended) => {
        if (keyId !== null) watched.set(keyId, (watched.get(keyId) ?? new Set()).add(ended))
        return ended
      }),
      (ended) =>
        Effect.sync(() => {
          const feeds = keyId === null ? undefined : watched.get(keyId)
          feeds?.delete(ended)
          if (feeds?.size === 0) watched.delete(keyId!)
        })
    )
  return untilRevoked
})

type UntilRevoked = Effect.Success<typeof makeKeyWatch>

const follow = (options: FeedOptions, untilRevoked: UntilRevoked) => {
  let subscribers = 0
  const ofOrg = new Map<OrgId, number>()
  const count = (orgId: OrgId, change: 1 | -1) =>
    Effect.sync(() => {
      subscribers += change
      const own = (ofOrg.get(orgId) ?? 0) + change
      if (own === 0) ofOrg.delete(orgId)
      else ofOrg.set(orgId, own)
    })
  return Effect.fnUntraced(function* (
    request: HttpServerRequest.HttpServerRequest,
    { lastEventId, after }: { readonly lastEventId: string | undefined; readonly after: string | undefined },
    filter: FeedFilter
  ) {
    const orgId = yield* ActingOrg
    const { keyId, may } = yield* Caller
    yield* knownChannel(filter.channel)
    const guard = filter.type === undefined ? undefined : scopeOfType.get(filter.type)
    if (guard !== undefined && !may(guard)) return yield* lacking(guard)
    const log = yield* LogReader
    const { seal, open } = yield* cursorsOf(LIST)
    const last = lastEventId ?? after
    const seen = last === undefined ? null : yield* open(last, lastEventId === undefined ? "after" : "last-event-id")
    const position = seen === null ? yield* log.end : seen === BEGINNING ? null : seen
    if (subscribers >= options.subscribersMax) return yield* tooMuch("Too many follow the feed here.", 30)
    yield* (yield* Admission).follow(orgId, ofOrg.get(orgId) ?? 0, options.subscribersOfOrgMax)
    const response = NodeHttpServerRequest.toServerResponse(request) as ServerResponse
    endless.add(response)
    leaveQuota(response)
    const encoder = new TextEncoder()
    const events = Stream.unfold({ position, begun: false } as Place, next(orgId, filter, may, options, seal)).pipe(
      Stream.catchTag("StoreUnavailable", () => Stream.succeed(": the store does not answer, come back\n\n")),
      Stream.map((text) => encoder.encode(text)),
      Stream.provideService(LogReader, log),
      Stream.provideService(Parked, yield* Parked),
      Stream.provideService(Quotas, yield* Quotas)
    )
    const watched = Stream.unwrap(
      Effect.gen(function* () {
        yield* Effect.acquireRelease(count(orgId, 1), () => count(orgId, -1))
        yield* Effect.forkScoped(cutOffWhenStuck(response, options.patience))
        return Stream.interruptWhen(events, Deferred.await(yield* untilRevoked(keyId)))
      })
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
    Effect.map(makeKeyWatch, (untilRevoked) => {
      const handle = follow(options, untilRevoked)
      return HttpApiBuilder.group(base.add(feedApi), "feed", (handlers) =>
        handlers.handleRaw("follow", ({ request, headers, query: { after, ...filter } }) =>
          answer(handle(request, { lastEventId: headers["last-event-id"], after }, filter))
        )
      )
    })
  )
