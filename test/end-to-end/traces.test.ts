/**
 * One message is one trace: the caller's, from the request over every attempt to the receiver, also where a worker is killed
 * and another one goes on. Read by a collector that decodes both forms of OTLP.
 */
import { it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import pg from "pg"
import { describe, expect } from "vitest"
import { freshDatabase } from "../servers/freshDatabase.ts"
import { otlpReceiver, type Span } from "../servers/otlpReceiver.ts"
import { operatorKey, product } from "../servers/product.ts"
import { receiver } from "../servers/receiver.ts"

const trace = "0af7651916cd43dd8448eb211c80319c"
const caller = "b7ad6b7169203331"
const mark = "MARKED"

const post = async (url: string, path: string, body: object, headers: Record<string, string> = {}) => {
  const response = await fetch(`${url}/api/v1${path}`, {
    method: "POST",
    headers: {
      ...{ authorization: `Bearer ${operatorKey}`, "x-org-id": "acme", "content-type": "application/json" },
      ...headers
    },
    body: JSON.stringify(body)
  })
  expect(response.status).toBe(201)
  return (await response.json()) as { id: string }
}

const spanIdOf = (traceparent: string) => traceparent.split("-")[2]!

describe.each(["http/protobuf", "http/json"])("traces by %s", (protocol) => {
  it.live(
    "show two retries, a killed worker and the delivery by another as one trace",
    () =>
      Effect.gen(function* () {
        const url = Redacted.value(yield* freshDatabase)
        const collector = yield* otlpReceiver
        const far = yield* receiver((_, nth) =>
          nth <= 2 ? { status: 503 } : nth === 3 ? { status: 200, afterMs: null } : { status: 200 }
        )
        const settings = {
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
          OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
          OTEL_SERVICE_NAME: "posthaste",
          OTEL_BSP_SCHEDULE_DELAY: "200",
          // A worker looks for what others left behind three times in its lease, and one that stands still for longer loses it.
          POSTHASTE_LEASE_MS: "5000"
        }
        const front = yield* product(url, { ...settings, POSTHASTE_ROLES: "api,projector" })
        const doomed = yield* product(url, { ...settings, POSTHASTE_ROLES: "worker", POSTHASTE_LEASE_MS: "1500" })
        yield* Effect.promise(async () => {
          const endpoint = await post(front.url!, "/webhook-endpoints", {
            url: `${far.url}/${mark}?token=${mark}`,
            headers: { "x-token": mark }
          })
          const message = {
            ...{ channel: "webhook", to: endpoint.id, correlationId: mark, payloadJson: { mark } },
            retry: { strategy: "fixed", baseMs: 50, attemptsMax: 6 }
          }
          const { id } = await post(front.url!, "/outbound/messages", message, {
            traceparent: `00-${trace}-${caller}-01`
          })
          // The third attempt is under way, and the spans of the first two were sent.
          await expect.poll(() => far.received.length, { timeout: 120_000 }).toBe(3)
          await expect.poll(() => collector.spans.length, { timeout: 120_000 }).toBe(3)
          await doomed.kill()
          const other = Effect.runPromise(
            Effect.scoped(
              Effect.andThen(product(url, { ...settings, POSTHASTE_ROLES: "worker" }), (worker) =>
                Effect.promise(async () => {
                  await expect.poll(() => far.received.length, { timeout: 120_000 }).toBe(4)
                  await worker.stop()
                })
              )
            )
          )
          await other
          await expect.poll(() => collector.spans.length, { timeout: 120_000 }).toBe(5)

          const spans = collector.spans as ReadonlyArray<Span>
          expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([trace]))
          const [accepted, ...attempts] = spans.toSorted((a, b) => (a.startNanos < b.startNanos ? -1 : 1))
          expect(accepted).toMatchObject({ name: "accept message", parentSpanId: caller })
          expect(accepted!.attributes).toMatchObject({ "messaging.message.id": id, "posthaste.outcome": "accepted" })
          for (const attempt of attempts) {
            expect(attempt).toMatchObject({ name: "deliver webhook", parentSpanId: accepted!.spanId })
            expect(attempt.links).toEqual([{ traceId: trace, spanId: accepted!.spanId }])
            expect(attempt.endNanos >= attempt.startNanos).toBe(true)
          }
          expect(
            attempts.map(({ attributes }) => [
              attributes["posthaste.epoch"],
              attributes["posthaste.attempt"],
              attributes["posthaste.outcome"],
              attributes["posthaste.reason"]
            ])
          ).toEqual([
            [1, 1, "failed", "http_503"],
            [1, 2, "failed", "http_503"],
            [1, 3, "abandoned", "abandoned"],
            [1, 4, "succeeded", undefined]
          ])
          // The receiver joins the trace at the attempt that called it; the killed worker's own span is lost.
          const joined = far.received.map(({ headers }) => String(headers["traceparent"]))
          expect(joined.every((one) => one.startsWith(`00-${trace}-`) && one.endsWith("-01"))).toBe(true)
          expect([joined[0], joined[1], joined[3]].map((one) => spanIdOf(one!))).toEqual(
            [attempts[0], attempts[1], attempts[3]].map((one) => one!.spanId)
          )
          expect(collector.bodies.some((body) => body.includes(mark))).toBe(false)
          expect([...collector.types]).toEqual([
            expect.stringContaining(protocol === "http/json" ? "json" : "protobuf")
          ])
        })
      }),
    600_000
  )
})

describe("without an exporter", () => {
  it.live("the receiver joins the trace that a transaction's command names", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const far = yield* receiver(() => ({ status: 200 }))
      const all = yield* product(url, {})
      yield* Effect.promise(async () => {
        const { id: to } = await post(all.url!, "/webhook-endpoints", { url: far.url })
        const client = new pg.Client({ connectionString: url })
        await client.connect()
        try {
          const message = JSON.stringify({ channel: "webhook", to, payloadJson: {} })
          await client.query("select posthaste.send('acme', $1, null, $2)", [message, `00-${trace}-${caller}-01`])
          await client.query("select posthaste.send('acme', $1)", [message])
        } finally {
          await client.end()
        }
        await expect.poll(() => far.received.length, { timeout: 120_000 }).toBe(2)
        const joined = far.received.map(({ headers }) => headers["traceparent"])
        expect(joined.toSorted()).toEqual([`00-${trace}-${caller}-01`, undefined])
      })
    })
  )

  it.live("the receiver joins the caller's own trace, and what is malformed is left out", () =>
    Effect.gen(function* () {
      const url = Redacted.value(yield* freshDatabase)
      const far = yield* receiver(() => ({ status: 200 }))
      const all = yield* product(url, {})
      yield* Effect.promise(async () => {
        const { id: to } = await post(all.url!, "/webhook-endpoints", { url: far.url })
        const sent = async (traceparent: string) =>
          post(all.url!, "/outbound/messages", { channel: "webhook", to, payloadJson: {} }, { traceparent })
        const known = await sent(`00-${trace}-${caller}-01`)
        await sent("00-not-a-trace")
        await expect.poll(() => far.received.length, { timeout: 120_000 }).toBe(2)
        const joined = Object.fromEntries(far.received.map(({ id, headers }) => [id, headers["traceparent"]]))
        expect(joined[known.id]).toBe(`00-${trace}-${caller}-01`)
        expect(Object.values(joined).filter((one) => one !== undefined)).toHaveLength(1)
      })
    })
  )
})
