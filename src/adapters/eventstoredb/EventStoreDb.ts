/**
 * The connection, and the only file that calls the client. Private to this adapter.
 *
 * A call about one stream ends within a few seconds. When nothing is heard meanwhile, as of a frozen leader, the
 * client, which would stay for twenty seconds, is told to look for another server, and callers are answered within two.
 * An append with an unknown outcome is repeated with the same ids on the same revision, which the server takes once;
 * still unknown, it is `StoreUnavailable`. At a wrong expected version our own events may stand there: an earlier try
 * was written and its answer lost.
 *
 * Four things about the client (6.2.1) decide how it is used:
 * - With BatchAppend all appends share one call; when it breaks, some never settle, and a late answer can throw where
 * no code catches it. So each append is a call of its own, bounded in number.
 * - It can't read `$all` filtered, although every server can.
 * - Its subscriptions tell a checkpoint while earlier events still wait to be taken.
 * - A read that was given up may fail later, and an error without a listener ends the process.
 *
 * For the last three, reads are made here. A removed stream is a tombstone: it takes no append ever again.
 */
import { ANY, ErrorType, type EventData, EventStoreDBClient, NO_STREAM } from "@eventstore/db-client"
import services from "@eventstore/db-client/generated/streams_grpc_pb.js"
import type { ReadReq, ReadResp } from "@eventstore/db-client/generated/streams_pb.js"
import { Cause, Effect, Layer, Queue, Redacted, Schedule, Semaphore } from "effect"
import type { StoreUnavailable } from "../../application/ports/errors.ts"
import { type Heard, Streams, type Writing } from "../../application/ports/Streams.ts"
import type { MessageId } from "../../domain/ids.ts"
import { MESSAGES, messageOf, streamOf } from "../../domain/streams.ts"
import { type Patience, untilLetIn, untilThere } from "./awaitServer.ts"
import { isAbsent, isFinal, isSilence, noAnswer, typeOf, unavailable, unavailableStatus } from "./clientErrors.ts"
import { whereIn } from "./findServer.ts"
import { eventOf, followRequest, type News, newsOf, streamRequest } from "./requests.ts"
import { eventsOf, type ReadEvent, writingOf, writingsOf } from "./streams.ts"

/** The longest wait for one try. */
const CALL_MS = 1_500
/**
 * The client keeps an append for so long after its caller gave it up. At a deadline it ends the request before it
 * cancels it, and a server may take the events it has for all: so no deadline may come between two events of one
 * append.
 */
const APPEND_LINGERS_MS = 30_000
/** After so much silence the client looks for another server. */
const SILENT_MS = 800
/** After so much, callers are told that the store does not answer. */
const ANSWERED_MS = 1_700
const LOOKS_EVERY_MS = 50
const LOOKED_LATE_MS = 75
/** A call with an unknown outcome is repeated for so long, no longer than one call may take. */
const PATIENCE = "1500 millis"
const retries = Schedule.min([Schedule.exponential("20 millis"), Schedule.spaced("250 millis")]).pipe(
  Schedule.upTo({ duration: PATIENCE })
)
/** A server takes 100 calls a connection; more wait in the client, with deadlines running. */
const CALLS_AT_ONCE = 80
const READ_MAX = 100_000
/** Events read ahead of the follower; beyond, the server waits. */
const AHEAD_MAX = 2_000

/** The parts of the client that its types hide. */
interface Internals {
  supports: () => Promise<boolean>
  readonly getGRPCClient: (client: typeof services.StreamsClient, name: string) => Promise<object>
  /** Leaves the server that the channel leads to, if the error says so. */
  readonly handleError: (client: object, error: object) => Promise<void>
  readonly GRPCStreamCreator: (
    client: typeof services.StreamsClient,
    name: string,
    create: (client: InstanceType<typeof services.StreamsClient>) => ReadCall
  ) => () => Promise<ReadCall>
  readonly callArguments: (
    about: { readonly requiresLeader?: boolean },
    options: { readonly deadline: Date | number }
  ) => [metadata: never, options: never]
}

type ReadCall = ReturnType<InstanceType<typeof services.StreamsClient>["read"]>

export const layer = (url: Redacted.Redacted, patience: Patience) =>
  Layer.effect(
    Streams,
    Effect.gen(function* () {
      const where = yield* whereIn(url)
      yield* untilThere(where, patience)
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => connect(url)),
        (client) => Effect.promise(() => client.dispose())
      )
      const permits = Semaphore.makeUnsafe(CALLS_AT_ONCE)
      const internals = client as unknown as Internals
      let heardAt = 0
      const hear = () => {
        heardAt = performance.now()
      }

      /**
       * Fails when nothing was heard for so long, of any call. A starved process hears nothing either: a late look
       * counts in part.
       */
      const silentFor = Effect.fnUntraced(function* (millis: number): Effect.fn.Return<never, StoreUnavailable> {
        let lookedAt = performance.now()
        let heardBefore = heardAt
        for (let silence = 0; silence < millis; ) {
          yield* Effect.sleep(LOOKS_EVERY_MS)
          const now = performance.now()
          silence = heardAt > heardBefore ? 0 : silence + Math.min(now - lookedAt, LOOKED_LATE_MS)
          heardBefore = heardAt
          lookedAt = now
        }
        return yield* Effect.fail(unavailable(noAnswer))
      })

      const lookForAnother = () =>
        void internals
          .getGRPCClient(services.StreamsClient, "silence")
          .then((silent) => internals.handleError(silent, Object.assign(new Error("silence"), unavailableStatus)))
          .catch(ignore)

      const heard = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
        effect.pipe(
          Effect.tap(Effect.sync(hear)),
          Effect.tapError(({ cause }) => (isSilence(cause) ? Effect.void : Effect.sync(hear))),
          Effect.raceFirst(Effect.tapError(silentFor(SILENT_MS), () => Effect.sync(lookForAnother))),
          permits.withPermit
        )

      const untilKnown = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
        Effect.retry(effect, { schedule: retries, while: ({ cause }) => !isFinal(cause) })

      const answered = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
        Effect.raceFirst(untilKnown(heard(effect)), silentFor(ANSWERED_MS))

      const tryAppend = (stream: string, version: number, events: ReadonlyArray<EventData>) =>
        call(() =>
          client.appendToStream(stream, [...events], {
            expectedRevision: version === 0 ? NO_STREAM : BigInt(version - 1),
            deadline: APPEND_LINGERS_MS
          })
        )

      const append = (writing: Writing) => {
        const stream = streamOf(writing.messageId)
        const events = eventsOf(writing)
        return answered(tryAppend(stream, writing.expected, events)).pipe(
          Effect.as("Appended" as const),
          Effect.catch((error) => {
            const type = typeOf(error.cause)
            if (type === ErrorType.STREAM_DELETED) return Effect.succeed("Removed" as const)
            if (type !== ErrorType.WRONG_EXPECTED_VERSION) return Effect.fail(error)
            // Another writer's events, or those of a try whose answer was lost.
            return Effect.map(read(stream, writing.expected, events.length), (there) =>
              events.every(({ id }, n) => there[n]?.id === id) ? "Appended" : "VersionConflict"
            )
          })
        )
      }

      const open = (request: ReadReq, name: string, deadline: number | Date, requiresLeader: boolean) =>
        internals.GRPCStreamCreator(services.StreamsClient, name, (streams) =>
          streams.read(request, ...internals.callArguments({ requiresLeader }, { deadline })).on("error", ignore)
        )()

      const readOnce = (request: ReadReq) =>
        Effect.callback<ReadonlyArray<ReadEvent>, StoreUnavailable>((resume) => {
          const events: Array<ReadEvent> = []
          let reading: ReadCall | null = null
          let given = false
          const fail = (cause: unknown) =>
            resume(isAbsent(cause) ? Effect.succeed([]) : Effect.fail(unavailable(cause)))
          open(request, "readStream", new Date(Date.now() + CALL_MS), true).then((started) => {
            reading = started
            if (given) return started.cancel()
            started.on("data", (response: ReadResp) => {
              const event = eventOf(response)
              if (event !== null) events.push(event)
            })
            started.on("error", fail)
            started.on("end", () => resume(Effect.succeed(events)))
          }, fail)
          return Effect.sync(() => {
            given = true
            reading?.cancel()
          })
        }).pipe(within(CALL_MS))

      const read = (stream: string, from = 0, count = READ_MAX) =>
        answered(readOnce(streamRequest(stream, from, count)))

      const follow = Effect.fnUntraced(function* (after: string | null) {
        const news = yield* Queue.unbounded<News, StoreUnavailable>()
        let following: ReadCall | null = null
        let given = false
        const fail = (cause: unknown) => Queue.failCauseUnsafe(news, Cause.fail(unavailable(cause)))
        yield* Effect.acquireRelease(
          Effect.sync(() => {
            open(followRequest(MESSAGES, after), "follow", Number.POSITIVE_INFINITY, false).then((started) => {
              following = started
              if (given) return started.cancel()
              started.on("data", (response: ReadResp) => {
                const heard = newsOf(response)
                if (heard !== null) Queue.offerUnsafe(news, heard)
                if (Queue.sizeUnsafe(news) > AHEAD_MAX) started.pause()
              })
              started.on("error", fail)
              started.on("end", () => fail("the subscription ended"))
            }, fail)
          }),
          () =>
            Effect.sync(() => {
              given = true
              following?.cancel()
            })
        )
        const take = Queue.takeAll(news).pipe(
          Effect.tap(() => Effect.sync(() => following?.resume())),
          Effect.map(heardOf)
        )
        return { take }
      })

      const remove = (id: MessageId, unless?: "there") =>
        answered(
          call(() =>
            client.tombstoneStream(streamOf(id), {
              expectedRevision: unless === "there" ? NO_STREAM : ANY,
              deadline: CALL_MS
            })
          )
        ).pipe(
          Effect.as(true),
          Effect.catch((error) => {
            const type = typeOf(error.cause)
            if (type === ErrorType.STREAM_DELETED || type === ErrorType.STREAM_NOT_FOUND) return Effect.succeed(true)
            return type === ErrorType.WRONG_EXPECTED_VERSION ? Effect.succeed(false) : Effect.fail(error)
          })
        )

      yield* untilLetIn(where, read(NO_STREAM_AT_ALL, 0, 1), patience)
      return Streams.of({
        append,
        read: (id, after) => Effect.map(read(streamOf(id), after), writingsOf),
        remove,
        follow
      })
    })
  )

const heardOf = (news: ReadonlyArray<News>): Heard => {
  const events = news.flatMap((each) => (each.type === "Event" ? [each.event] : []))
  return {
    versions: new Map(
      events.flatMap(({ stream, revision }) => {
        const id = messageOf(stream)
        return id === null ? [] : [[id, revision + 1]]
      })
    ),
    writings: events.map(writingOf),
    position: news.at(-1)!.position
  }
}

const NO_STREAM_AT_ALL = "posthaste-is-anybody-there"

/** The longest wait for each host of a cluster. */
const GOSSIP_SECONDS = 1

const connect = (url: Redacted.Redacted): EventStoreDBClient => {
  const given = Redacted.value(url)
  const more = /[?&]gossipTimeout=/i.test(given)
    ? ""
    : `${given.includes("?") ? "&" : "?"}gossipTimeout=${GOSSIP_SECONDS}`
  const client = EventStoreDBClient.connectionString(given + more)
  const internals = client as unknown as Internals
  internals.supports = () => Promise.resolve(false)
  return client
}

const ignore = () => {}

/** The client may look for a server for long before it makes a call. */
const within =
  (millis: number) =>
  <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
    Effect.timeoutOrElse(effect, { duration: millis + 250, orElse: () => Effect.fail(unavailable(noAnswer)) })

const call = <A>(made: () => Promise<A>) => within(CALL_MS)(Effect.tryPromise({ try: made, catch: unavailable }))
