/** An endpoint that is gone, or at which every attempt fails for days, is disabled; what waits for it stays until it is enabled. */

import { it } from "@effect/vitest"
import { DateTime, Duration, Effect, Layer } from "effect"
import { describe, expect } from "vitest"
import * as PagerDutyAlerts from "../../../src/adapters/channels/pagerduty/PagerDutyAlerts.ts"
import type { EndpointSettings } from "../../../src/adapters/channels/webhook/settings.ts"
import * as WebhookAlerts from "../../../src/adapters/channels/webhook/WebhookAlerts.ts"
import { alertOnFactsOnce } from "../../../src/application/alerts/alertOnFacts.ts"
import { dispatch } from "../../../src/application/deliver/dispatch.ts"
import { Senders, senderOf } from "../../../src/application/deliver/Senders.ts"
import { disableFailingOnce, healthOf } from "../../../src/application/destinations/health.ts"
import { LogReader } from "../../../src/application/log/LogReader.ts"
import { projectOnce } from "../../../src/application/log/projections/keepProjections.ts"
import { listMessages } from "../../../src/application/messages/listMessages.ts"
import { AlertFormats } from "../../../src/application/ports/AlertFormats.ts"
import { AuditTrail } from "../../../src/application/ports/AuditTrail.ts"
import type { Channel } from "../../../src/application/ports/Channels.ts"
import { Destinations } from "../../../src/application/ports/Destinations.ts"
import { EventStore } from "../../../src/application/ports/EventStore.ts"
import { outcomeOfStatus } from "../../../src/domain/delivery/classify.ts"
import type { DestinationId, MessageId, OrgId } from "../../../src/domain/ids.ts"
import { makeEndpoint, webhook } from "../../contracts/destinations/samples.ts"
import { inMillis, newOrg, opened } from "../../contracts/sample.ts"
import * as Fingerprints from "../../model/Fingerprints.ts"
import * as MemoryPorts from "../../model/MemoryPorts.ts"
import { simulateTime } from "../../simulatedTime.ts"

simulateTime()

const DAY = Duration.days(1)
const alertFormats = Layer.succeed(AlertFormats, { webhook: WebhookAlerts.format, pagerduty: PagerDutyAlerts.format })

/**
 * `work` lets a worker do all that is due; it sends to endpoints of the real channel's record, and `status` is what they
 * answer. Between times nobody works: days of polling would take minutes.
 */
const withWorker = <A, E, R>(
  status: () => number,
  body: (sent: ReadonlyArray<MessageId>, work: Effect.Effect<void>) => Effect.Effect<A, E, R>
) => {
  const sent: Array<MessageId> = []
  const channel: Channel<EndpointSettings> = {
    ...webhook,
    open: Effect.succeed({
      send: ({ messageId, eventType }) =>
        Effect.sync(() => {
          if (eventType?.startsWith("posthaste.") !== true) sent.push(messageId)
          return { outcome: outcomeOfStatus(status(), 7, null), responseBody: null }
        })
    })
  }
  const worker = dispatch({
    worker: "w",
    concurrency: 8,
    lease: Duration.hours(6),
    grace: Duration.seconds(1),
    circuit: { failuresMax: 1_000, openMs: 1_000, openMaxMs: 1_000 }
  })
  const senders = Layer.effect(
    Senders,
    Effect.map(senderOf(channel), (sender) => ({ webhook: sender }))
  )
  return Effect.gen(function* () {
    const services = yield* Effect.context<Effect.Services<typeof worker>>()
    const work = Effect.scoped(Effect.andThen(worker, Effect.sleep("3 seconds"))).pipe(Effect.provide(services))
    return yield* body(sent, work)
  }).pipe(
    Effect.scoped,
    Effect.provide(senders),
    Effect.provide(Layer.provideMerge(LogReader.layer, MemoryPorts.layer)),
    Effect.provide([alertFormats, Fingerprints.layer])
  )
}

const put = Effect.fnUntraced(function* (orgId: OrgId, destination: DestinationId, count: number, waitHours = 24) {
  const retry = { strategy: "schedule", waitsMs: [waitHours * 3_600_000], attemptsMax: 100 } as const
  const steps = Array.from({ length: count }, (_, n) =>
    opened({ orgId, destination, dueAt: inMillis(n), acceptedAt: inMillis(0), retry })
  )
  yield* (yield* EventStore).append(steps.map(({ entry }) => entry))
  return steps.map(({ after }) => after.id)
})

const look = Effect.gen(function* () {
  while ((yield* projectOnce()) > 0);
  return yield* disableFailingOnce()
})

const read = Effect.fnUntraced(function* (orgId: OrgId, id: DestinationId) {
  return (yield* (yield* Destinations).get(orgId, id))!
})

const alertsOf = Effect.fnUntraced(function* (orgId: OrgId) {
  yield* alertOnFactsOnce()
  while ((yield* projectOnce()) > 0);
  const { items } = yield* listMessages(orgId, {}, { cursor: null, limit: 100 })
  return items
    .flatMap(({ eventType }) => (eventType?.startsWith("posthaste.destination.") ? [eventType] : []))
    .toReversed()
})

const audited = Effect.fnUntraced(function* (orgId: OrgId, operation: "DISABLED" | "ENABLED") {
  const { items } = yield* (yield* AuditTrail).list(orgId, { operation }, { cursor: null, limit: 10 })
  return items.map(({ subject, details }) => [subject.id, details])
})

const alerting = {
  alerting: { type: "webhook", events: ["disabled"], oldestDueSeconds: null, severity: null, description: null }
} as const

describe("an endpoint at which every attempt fails", () => {
  it.live("is disabled after five days, and sends all that waited, in order, once it is enabled", () => {
    let status = 503
    return withWorker(
      () => status,
      Effect.fnUntraced(function* (sent, work) {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId)
        yield* makeEndpoint(orgId, {}, alerting)
        const first = yield* put(orgId, id, 1)
        yield* work
        for (let day = 0; day < 4; day++) {
          yield* Effect.sleep(DAY)
          yield* work
          expect(yield* look).toBe(0)
        }
        yield* Effect.sleep(DAY)
        yield* work
        expect(yield* look).toBe(1)
        expect(yield* look).toBe(0)
        const since = (yield* healthOf(id)).failingSince!
        const reason = `every attempt has failed since ${DateTime.formatIso(since)}`
        expect(yield* read(orgId, id)).toMatchObject({ disabledReason: reason, paused: false })
        expect(sent).toEqual(Array.from({ length: 6 }, () => first[0]))
        expect(yield* alertsOf(orgId)).toEqual(["posthaste.destination.disabled"])

        const more = yield* put(orgId, id, 5)
        yield* Effect.sleep("2 days")
        yield* work
        expect(sent).toHaveLength(6)
        expect(yield* healthOf(id)).toMatchObject({ waiting: 6, lastDay: { failed: 0 }, circuit: "CLOSED" })
        expect(yield* audited(orgId, "DISABLED")).toEqual([[id, { reason }]])

        status = 200
        const destinations = yield* Destinations
        expect(yield* destinations.setDisabled(webhook, orgId, id, null)).toMatchObject({ disabledReason: null })
        yield* work
        expect(sent.slice(6)).toEqual([...more, first[0]])
        expect(yield* look).toBe(0)
        expect(yield* healthOf(id)).toMatchObject({
          failingSince: null,
          waiting: 0,
          lastHour: { attempts: 6, succeeded: 6, failed: 0, successRate: 1, latencyMs: { p50: 8, p95: 8, p99: 8 } }
        })
        expect(yield* alertsOf(orgId)).toEqual(["posthaste.destination.disabled", "posthaste.destination.enabled"])
        expect(yield* audited(orgId, "ENABLED")).toEqual([[id, {}]])
      })
    )
  })

  it.live("counts from its enabling when it was disabled before, and from its last success", () => {
    let status = 503
    return withWorker(
      () => status,
      Effect.fnUntraced(function* (_sent, work) {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId, { disableAfterMs: 3 * 3_600_000 })
        yield* put(orgId, id, 1, 1)
        yield* work
        yield* Effect.sleep("2 hours")
        yield* work
        expect(yield* look).toBe(0)
        yield* Effect.sleep("1 hour")
        yield* work
        expect(yield* look).toBe(1)
        yield* (yield* Destinations).setDisabled(webhook, orgId, id, null)
        yield* Effect.sleep("2 hours")
        yield* work
        expect(yield* look).toBe(0)
        status = 200
        yield* put(orgId, id, 1, 1)
        yield* work
        status = 503
        yield* put(orgId, id, 1, 1)
        yield* work
        yield* Effect.sleep("2 hours")
        yield* work
        expect(yield* look).toBe(0)
        yield* Effect.sleep("1 hour")
        yield* work
        expect(yield* look).toBe(1)
      })
    )
  })

  it.live("is never disabled where its settings say so, nor by one failure however long ago", () =>
    withWorker(
      () => 503,
      Effect.fnUntraced(function* (_sent, work) {
        const orgId = newOrg()
        const forever = yield* makeEndpoint(orgId, { disableAfterMs: 0 })
        const once = yield* makeEndpoint(orgId)
        yield* put(orgId, forever.id, 1)
        yield* put(orgId, once.id, 1, 24 * 29)
        for (let day = 0; day < 8; day++) {
          yield* work
          yield* Effect.sleep(DAY)
        }
        expect(yield* look).toBe(0)
      })
    )
  )
})

describe("an endpoint that answers 410", () => {
  it.live("is disabled at once, by the first answer; what waits stays, and goes when it is enabled", () => {
    let status = 410
    return withWorker(
      () => status,
      Effect.fnUntraced(function* (sent, work) {
        const orgId = newOrg()
        const { id } = yield* makeEndpoint(orgId, { maxInFlight: 1 })
        yield* makeEndpoint(orgId, {}, alerting)
        const ids = yield* put(orgId, id, 50)
        yield* work
        expect(sent.length).toBeGreaterThan(0)
        expect(sent.length).toBeLessThan(5)
        expect(yield* read(orgId, id)).toMatchObject({ disabledReason: "it answered 410: it is gone" })
        expect(yield* alertsOf(orgId)).toEqual(["posthaste.destination.disabled"])
        const refused = sent.length
        status = 200
        yield* (yield* Destinations).setDisabled(webhook, orgId, id, null)
        yield* work
        expect(sent).toHaveLength(50)
        expect(sent.slice(refused)).toEqual(ids.slice(refused))
      })
    )
  })
})
